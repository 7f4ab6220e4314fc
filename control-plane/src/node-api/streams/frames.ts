// Reads the frames of agents. What is inside a call is validated by its endpoint, as over HTTP.

import { correlationIdForm } from "@holdfast/contracts/headers";
import { BATCH, MOST_RESULTS_BODY_BYTES } from "@holdfast/contracts/node/limits";
import { Held } from "@holdfast/contracts/node/protocol";
import type { AgentFrame } from "@holdfast/contracts/node/stream";
import { z } from "zod";

/** The largest body and what is around it. */
export const MOST_FRAME_BYTES = MOST_RESULTS_BODY_BYTES + 64 * 1024;

const Capacity = z.strictObject({
  capacity: z.strictObject({
    room: z.int().min(0).max(BATCH),
    holding: z.array(Held).max(256),
    seen: z.int().nonnegative(),
  }),
});
const Call = z.strictObject({
  id: z.int().nonnegative(),
  call: z.string().max(64),
  params: z.record(z.string().max(64), z.string().max(64)).optional(),
  body: z.unknown().optional(),
  correlation_id: z.string().regex(correlationIdForm),
});

/** Undefined: not a frame of an agent. */
export function readFrame(text: string): AgentFrame | undefined {
  const value = parse(text);
  if (typeof value !== "object" || value === null) return undefined;
  return ("capacity" in value ? Capacity : Call).safeParse(value).data as AgentFrame | undefined;
}

/** As in requests, a key that could change a prototype is refused. */
function parse(text: string): unknown {
  try {
    return /__proto__|constructor/.test(text) ? JSON.parse(text, refusePrototypes) : JSON.parse(text);
  } catch {
    return undefined;
  }
}

function refusePrototypes(key: string, value: unknown): unknown {
  const isPrototype =
    key === "__proto__" ||
    (key === "constructor" && typeof value === "object" && value !== null && Object.hasOwn(value, "prototype"));
  if (isPrototype) throw new SyntaxError("a key that changes prototypes");
  return value;
}
