// Ports for what has to be told its port before it listens, or listens again on the same one after a restart.

import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:net";

/** Below those that the kernel gives to whoever asks for any: nobody else is given one before it is used. */
const RANGE = { first: 20_000, last: 31_999 };

/** Free a moment ago, which is as much as can be known. */
export async function freePorts<const T extends number[]>(count: T["length"]): Promise<T> {
  const servers: Server[] = [];
  const ports: number[] = [];
  while (ports.length < count) {
    const port = randomInt(RANGE.first, RANGE.last + 1);
    const server = createServer().listen(port, "127.0.0.1");
    // Somebody has it: another one then.
    if (!(await once(server, "listening").catch(() => undefined))) continue;
    servers.push(server);
    ports.push(port);
  }
  await Promise.all(servers.map((one) => new Promise((resolve) => one.close(resolve))));
  return ports as T;
}
