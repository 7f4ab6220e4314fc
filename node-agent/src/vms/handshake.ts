// What guest and agent say over the virtio-serial channel, one line each, so that a shell can speak it:
//   guest  hello <secret>      from the seed, or the one that it was given for later connections
//   agent  welcome <secret>    or: denied
//   guest  ready               the guest has its new secret; the one from the seed counts no longer
//   agent  run <id> <base64>   a command line for the guest's shell; what comes of it is in commands.ts
// Pure: the caller keeps the record on disk before it sends the reply.

import { createHash, timingSafeEqual } from "node:crypto";
import type { GuestRecord } from "./record.generated.ts";

export const LONGEST_LINE = 8192;

export type Step = { record: GuestRecord; reply: string | undefined; accepted: boolean };

export function digestOf(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

/** `welcomed`: a `hello` was accepted on this connection. `newSecret`: for a guest that presents its seed's. */
export function answerLine(
  line: string,
  state: { record: GuestRecord; welcomed: boolean; newSecret: string; now: string },
): Step {
  const { record } = state;
  const nothing = { record, reply: undefined, accepted: state.welcomed };
  const [word, value = ""] = line.trim().split(" ");
  if (word === "hello") {
    const digest = digestOf(value);
    if (same(digest, record.seed_sha256))
      return {
        record: { ...record, session_sha256: digestOf(state.newSecret) },
        reply: `welcome ${state.newSecret}`,
        accepted: true,
      };
    if (same(digest, record.session_sha256)) return { record, reply: `welcome ${value}`, accepted: true };
    return { record, reply: "denied", accepted: false };
  }
  if (word === "ready" && state.welcomed)
    return {
      ...nothing,
      record: {
        ...record,
        seed_sha256: null,
        connected_at: record.connected_at ?? state.now,
        disconnected_at: null,
      },
    };
  return nothing;
}

function same(digest: string, expected: string | null): boolean {
  if (expected === null || expected.length !== digest.length) return false;
  return timingSafeEqual(Buffer.from(digest), Buffer.from(expected));
}
