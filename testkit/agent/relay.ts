// A TCP relay between an agent and the api, with the faults of real networks: it cuts connections that are silent, or
// swallows everything without closing a connection.

import { once } from "node:events";
import { type AddressInfo, createServer, connect as dial, type Socket } from "node:net";
import { atEnd } from "../lifetime/at-end.ts";

export type Relay = {
  /** For an agent, in place of the api's. */
  url: string;
  /** From now on; undefined: never. */
  cutWhenSilentFor(ms: number | undefined): void;
  /** How many connections were cut because they were silent. */
  cuts(): number;
  /** The age of the oldest open connection; 0: there is none. */
  oldestMs(): number;
  /** Drops all data of present and new connections, in both directions, and keeps them open. */
  swallow(): void;
  /** Passes on new connections again, and resets those whose data was dropped. */
  heal(): void;
};

type Pair = { near: Socket; far: Socket; openedAt: number; lastAt: number; lossy: boolean };

const LOOK_EVERY_MS = 20;

export async function startRelay(apiUrl: string): Promise<Relay> {
  const target = Number(new URL(apiUrl).port);
  const pairs = new Set<Pair>();
  let silentMs: number | undefined;
  let swallowing = false;
  let cuts = 0;

  const end = (pair: Pair) => {
    pairs.delete(pair);
    pair.near.destroy();
    pair.far.destroy();
  };
  const server = createServer((near) => {
    const now = performance.now();
    const pair: Pair = { near, far: dial(target, "127.0.0.1"), openedAt: now, lastAt: now, lossy: swallowing };
    pairs.add(pair);
    const pass = (to: Socket) => (piece: Buffer) => {
      pair.lastAt = performance.now();
      if (!pair.lossy) to.write(piece);
    };
    near.on("data", pass(pair.far));
    pair.far.on("data", pass(near));
    for (const [socket, other] of [
      [near, pair.far],
      [pair.far, near],
    ] as const) {
      socket.on("error", () => undefined);
      socket.on("close", () => {
        // What one side does is not noticed at the other.
        if (!pair.lossy) other.destroy();
        if (socket.destroyed && other.destroyed) pairs.delete(pair);
      });
    }
  });
  const looks = setInterval(() => {
    for (const pair of pairs) {
      if (silentMs === undefined || performance.now() - pair.lastAt < silentMs) continue;
      cuts += 1;
      end(pair);
    }
  }, LOOK_EVERY_MS);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  atEnd(async () => {
    clearInterval(looks);
    for (const pair of pairs) end(pair);
    await new Promise((resolve) => server.close(resolve));
  });

  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cutWhenSilentFor(ms) {
      silentMs = ms;
    },
    cuts: () => cuts,
    oldestMs: () => Math.max(0, ...[...pairs].map(({ openedAt }) => performance.now() - openedAt)),
    swallow() {
      swallowing = true;
      for (const pair of pairs) pair.lossy = true;
    },
    heal() {
      swallowing = false;
      for (const pair of pairs) if (pair.lossy) end(pair);
    },
  };
}
