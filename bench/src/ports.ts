// Ports of loopback for what cannot say itself which one it took.

import { type AddressInfo, connect, createServer } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import type { RunningProgram } from "./program.ts";

export async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

/** When the program accepts connections there; rejects with its last words if it ends before. */
export async function answers(port: number, program: RunningProgram): Promise<void> {
  let over = false;
  const ended = program.output.then(() => {
    throw new Error(`what should listen on port ${port} ended at once`);
  });
  const reached = async () => {
    while (!over && !(await accepts(port))) await pause(20);
  };
  try {
    await Promise.race([ended, reached()]);
  } finally {
    over = true;
  }
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1").on("error", () => resolve(false));
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
  });
}
