// A relay whose connections can become half-open: nothing passes any more, and neither end is told. New connections
// pass, as they do after a router has forgotten the old ones.

import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export type HalfOpenRelay = {
  port: number;
  /** Silences the connections that are there; returns how many of them were terminals, not questions of the client. */
  silence(): number;
  stop(): Promise<void>;
};

export async function startHalfOpenRelay(target: number): Promise<HalfOpenRelay> {
  const pairs = new Set<[Socket, Socket]>();
  const terminals = new Set<[Socket, Socket]>();
  const everything = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(target, "127.0.0.1");
    const pair: [Socket, Socket] = [near, far];
    pairs.add(pair);
    near.once("data", (first) => {
      if (isTls(first) || /^upgrade: websocket/im.test(first.toString("latin1"))) terminals.add(pair);
    });
    for (const [from, to] of [pair, pair.toReversed() as typeof pair]) {
      everything.add(from);
      from.on("error", () => undefined);
      from.on("data", (bytes) => pairs.has(pair) && to.write(bytes));
      from.on("close", () => {
        everything.delete(from);
        terminals.delete(pair);
        if (pairs.delete(pair)) to.destroy();
      });
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    silence() {
      const count = terminals.size;
      terminals.clear();
      pairs.clear();
      return count;
    },
    async stop() {
      for (const socket of everything) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Between node and gateway there is nothing but terminals. */
function isTls(first: Buffer): boolean {
  return first[0] === 0x16;
}
