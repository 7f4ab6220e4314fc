// A Redis of the bench's own, on a free port of loopback, with its append-only log on the disk.

import { existsSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import type { Lab } from "./lab.ts";

const server = "/usr/bin/redis-server";

export async function startRedis(lab: Lab, appendfsync: "everysec" | "always"): Promise<number> {
  if (!existsSync(server)) throw new Error(`${server} is missing; install it: apt-get install redis-server`);
  const port = await freePort();
  const program = lab.start({
    command: server,
    args: [
      ...["--port", String(port), "--bind", "127.0.0.1", "--dir", lab.directory()],
      ...["--save", "", "--appendonly", "yes", "--appendfsync", appendfsync, "--daemonize", "no"],
    ],
  });
  const ended = program.output.then(() => {
    throw new Error("Redis ended at once");
  });
  await Promise.race([ended, answers(port)]);
  return port;
}

async function answers(port: number): Promise<void> {
  for (;;) {
    const reached = await new Promise<boolean>((resolve) => {
      const socket = connect(port, "127.0.0.1", () => resolve(true)).on("error", () => resolve(false));
      socket.once("connect", () => socket.destroy());
    });
    if (reached) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}
