// Resident memory of another Node.js process after a collection of garbage, which its inspector is asked for. Without one, a figure
// of resident memory contains what V8 keeps for new objects, and that follows the traffic, not what is kept.

import { setTimeout as wait } from "node:timers/promises";
import WebSocket from "ws";
import { residentKb } from "./processes.ts";

/** For the environment of a process that is to be asked. It listens on a port of its own, and only once it is asked. */
export const withInspector = { NODE_OPTIONS: "--inspect-port=127.0.0.1:0" };

const LOOK_MS = 50;
const MOST_LOOKS = 200;
/** A first collection frees some of it only for the second one. */
const COLLECTIONS = 3;
/** V8 returns pages after the collection, in the background. */
const SETTLE_MS = 2_000;

/** `printed`: all that the process wrote to stderr. */
export async function collectedKb(pid: number, printed: () => string): Promise<number> {
  process.kill(pid, "SIGUSR1");
  const socket = new WebSocket(await addressIn(printed));
  await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
  for (let id = 1; id <= COLLECTIONS; id += 1) {
    const answered = new Promise((resolve, reject) => socket.once("message", resolve).once("close", reject));
    socket.send(JSON.stringify({ id, method: "HeapProfiler.collectGarbage" }));
    await answered;
  }
  socket.terminate();
  await wait(SETTLE_MS);
  return residentKb(pid);
}

async function addressIn(printed: () => string): Promise<string> {
  for (let look = 0; look < MOST_LOOKS; look += 1) {
    const found = [...printed().matchAll(/Debugger listening on (ws:\S+)/g)].at(-1)?.[1];
    if (found) return found;
    await wait(LOOK_MS);
  }
  throw new Error("the process opens no inspector");
}
