// What a gateway sends, as this agent reads it by frames.generated.ts. The forms are those of contracts/src/execution/frames.ts;
// unknown fields are ignored, and what is signed is left exactly as it came.

import { CancelFrame, RequestId, ResultAckFrame } from "@holdfast/contracts/execution/frames";
import { Id } from "@holdfast/contracts/fields";
import { z } from "zod";

/** A delivery that can be declined, whatever else is wrong with it. */
export const AnyExecute = z.object({
  type: z.literal("execute"),
  requestId: RequestId,
  generation: z.int().positive().optional(),
});

export const SignedExecute = z.object({
  type: z.literal("execute"),
  requestId: RequestId,
  generation: z.int().positive(),
  agentId: z.string(),
  organizationId: z.string(),
  userId: z.string(),
  kind: z.string().max(64),
  payload: z.unknown(),
  secret: z.string().min(1).optional(),
  expiresAt: z.iso.datetime(),
  timeoutMs: z.int().positive(),
  signature: z.string(),
  correlationId: z.string().max(200).optional(),
});

export const GatewayFrame = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("welcome"),
    agentId: Id,
    organizationId: Id,
    leaseMs: z.int().positive(),
    /** Verified before anything in them is read. */
    keySets: z.array(z.unknown()),
  }),
  z.object({ type: z.literal("pong") }),
  ResultAckFrame,
  CancelFrame,
  z.object({ type: z.literal("drain") }),
  z.object({ type: z.literal("error"), code: z.string(), message: z.string() }),
]);
