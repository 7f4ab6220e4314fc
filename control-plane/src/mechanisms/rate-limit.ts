// Counts attempts in PostgreSQL, so that the limit holds across replicas and restarts.

import { createHash } from "node:crypto";
import { ApiError } from "@holdfast/contracts/errors";
import type { Sql } from "../database/connect.ts";

export type Limit = { attempts: number; windowSeconds: number };

/** Wide enough for a person who mistypes, narrow enough that guessing a password is hopeless. */
export const limits = {
  accountFromAddress: { attempts: 10, windowSeconds: 15 * 60 },
  /** For one account, from all devices and networks where its owner has not signed in before. */
  strangers: { attempts: 100, windowSeconds: 60 * 60 },
  /** For one account, from one device where its owner has signed in before. */
  device: { attempts: 10, windowSeconds: 15 * 60 },
  address: { attempts: 60, windowSeconds: 15 * 60 },
} satisfies Record<string, Limit>;

/** Counts one attempt, or refuses it with the time to wait. One statement: no race between replicas. */
export async function takeAttempt(system: Sql, limit: Limit, ...subject: string[]): Promise<void> {
  const window = `${limit.windowSeconds} seconds`;
  const [state] = await system<{ attempts: number; wait: number }[]>`
    INSERT INTO rate_limits AS r (key, window_ends_at, attempts)
    VALUES (${keyOf(subject)}, now() + ${window}::interval, 1)
    ON CONFLICT (key) DO UPDATE SET
      attempts = CASE WHEN r.window_ends_at <= now() THEN 1 ELSE r.attempts + 1 END,
      window_ends_at = CASE WHEN r.window_ends_at <= now() THEN now() + ${window}::interval ELSE r.window_ends_at END
    RETURNING attempts, ceil(extract(epoch FROM window_ends_at - now()))::int AS wait`;
  if (state && state.attempts > limit.attempts) {
    throw new ApiError("rate_limit_exceeded", {
      headers: { "retry-after": String(state.wait) },
      details: { retry_after_seconds: state.wait },
    });
  }
}

/** Resets the count after a success. */
export async function forgetAttempts(system: Sql, ...subject: string[]): Promise<void> {
  await system`DELETE FROM rate_limits WHERE key = ${keyOf(subject)}`;
}

/** A client with an IPv6 address usually has a whole /64, which is counted as one; an IPv4 address counts as itself. */
export function networkOf(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address);
  if (mapped?.[1]) return mapped[1];
  if (!address.includes(":")) return address;
  const [head = "", tail] = address.split("%", 1)[0]?.split("::") ?? [];
  const before = head.split(":").filter(Boolean);
  const after = tail?.split(":").filter(Boolean) ?? [];
  const groups =
    tail === undefined ? before : [...before, ...Array(8 - before.length - after.length).fill("0"), ...after];
  return `${groups
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ""))
    .join(":")}::/64`;
}

function keyOf(subject: string[]): Buffer {
  return createHash("sha256").update(subject.join("\0")).digest();
}
