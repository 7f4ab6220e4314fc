// What another Node.js process holds in memory after its garbage was collected, asked through its inspector.

import { readFileIfPresent } from "@holdfast/kit/files";
import WebSocket from "ws";
import { until } from "../../../testkit/processes/holdfast.ts";

/** Megabytes. */
export type Memory = { resident: number; heap: number; external: number };

/** A process that is to be asked is started with this: each listens at a port of its own, once it is told to. */
export const withInspector = { NODE_OPTIONS: "--inspect-port=127.0.0.1:0" };

/** `log`: where what it prints is kept; it prints its address there. */
export async function memoryOf(pid: number, log: string): Promise<Memory> {
  const address = () => (readFileIfPresent(log) ?? "").matchAll(/Debugger listening on (ws:\S+)/g);
  process.kill(pid, "SIGUSR1");
  let url = "";
  await until(() => {
    url = [...address()].at(-1)?.[1] ?? "";
    return url !== "";
  });
  const socket = new WebSocket(url);
  await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
  try {
    // What a first collection only marks or finalizes, a second one frees.
    for (let times = 0; times < 3; times += 1) await ask(socket, "HeapProfiler.collectGarbage");
    const expression = "JSON.stringify(process.memoryUsage())";
    const { result } = (await ask(socket, "Runtime.evaluate", { expression })) as { result: { value: string } };
    const { rss, heapUsed, external } = JSON.parse(result.value) as NodeJS.MemoryUsage;
    return { resident: megabytes(rss), heap: megabytes(heapUsed), external: megabytes(external) };
  } finally {
    socket.terminate();
  }
}

const megabytes = (bytes: number) => Math.round((bytes / 2 ** 20) * 10) / 10;

let asked = 0;
function ask(socket: WebSocket, method: string, params = {}): Promise<unknown> {
  asked += 1;
  const id = asked;
  socket.send(JSON.stringify({ id, method, params }));
  return new Promise((resolve, reject) => {
    const onMessage = (data: Buffer) => {
      const answer = JSON.parse(data.toString()) as { id?: number; result?: unknown; error?: { message: string } };
      if (answer.id !== id) return;
      socket.off("message", onMessage);
      if (answer.error) reject(new Error(`${method}: ${answer.error.message}`));
      else resolve(answer.result);
    };
    socket.on("message", onMessage);
  });
}
