// The brake as pages show it: read when somebody asks, and at most every few seconds, because it reads all nodes.

import type { Sql } from "../../database/connect.ts";
import type { Brake } from "./decide.ts";
import { readBrake } from "./read.ts";

const FRESH_MS = 5_000;

export type Brakes = {
  /** Reads if needed, on a connection of its own: do not await it within a transaction. */
  current(): Promise<Brake>;
  /** As it was read last. */
  known(): Brake;
};

export function createBrakes(system: Sql, now: () => number = () => performance.now()): Brakes {
  let known: Brake = { braked: false };
  let reading: Promise<Brake> | undefined;
  let readAt = Number.NEGATIVE_INFINITY;
  return {
    async current() {
      if (now() - readAt < FRESH_MS) return known;
      reading ??= readBrake(system).finally(() => {
        reading = undefined;
      });
      known = await reading;
      readAt = now();
      return known;
    },
    known: () => known,
  };
}
