// Generated from frames.schema.ts by `npm run generate`; do not edit.

import * as check from "@holdfast/kit/checks";
import type { z } from "zod";
import type * as schemas from "./frames.schema.ts";

const shared1 = check.oneOf(["execute"], "Invalid input: expected \"execute\"");
const shared2 = check.minLength(1, "Too small: expected string to have >=1 characters");
const shared3 = check.chain(check.number(), check.integer(), check.above(0, "Too small: expected number to be >0"));
const shared4 = check.chain(
  check.string(),
  check.refine((text) => !text.includes("\0"), "must not contain a NUL character"),
  check.refine(
    (text) => text.isWellFormed(),
    "must be valid Unicode: it contains half of a surrogate pair",
  ),
  shared2,
  check.maxLength(400, "Too big: expected string to have <=400 characters"),
);
const shared5 = check.pipe(
  check.chain(check.string(), check.overwrite((input) => input.toLowerCase())),
  check.chain(
    check.string("not an id; ids look like 01a1e13c-bc3d-71c5-9b58-aada3c2346d4"),
    check.pattern(
      /^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}|00000000-0000-0000-0000-000000000000|ffffffff-ffff-ffff-ffff-ffffffffffff)$/,
      "not an id; ids look like 01a1e13c-bc3d-71c5-9b58-aada3c2346d4",
    ),
  ),
);

export type AnyExecute = z.output<typeof schemas.AnyExecute>;
export const AnyExecute: check.Check<AnyExecute> = check.of(check.object({type: shared1, requestId: shared4, generation: check.optional(shared3)}));

export type GatewayFrame = z.output<typeof schemas.GatewayFrame>;
export const GatewayFrame: check.Check<GatewayFrame> = check.of(check.variants(
  "type",
  [
    [
      ["welcome"],
      check.object({
        type: check.oneOf(["welcome"], "Invalid input: expected \"welcome\""),
        agentId: shared5,
        organizationId: shared5,
        leaseMs: shared3,
        keySets: check.array(check.unknown()),
      }),
    ],
    [["pong"], check.object({type: check.oneOf(["pong"], "Invalid input: expected \"pong\"")})],
    [
      ["result_ack"],
      check.object({
        type: check.oneOf(["result_ack"], "Invalid input: expected \"result_ack\""),
        requestId: shared4,
        generation: shared3,
        verdict: check.oneOf(
          ["accepted", "duplicate", "late", "unknown"],
          "Invalid option: expected one of \"accepted\"|\"duplicate\"|\"late\"|\"unknown\"",
        ),
      }),
    ],
    [
      ["cancel"],
      check.object({
        type: check.oneOf(["cancel"], "Invalid input: expected \"cancel\""),
        requestId: shared4,
        generation: shared3,
        reason: check.string(),
      }),
    ],
    [["drain"], check.object({type: check.oneOf(["drain"], "Invalid input: expected \"drain\"")})],
    [
      ["error"],
      check.object({
        type: check.oneOf(["error"], "Invalid input: expected \"error\""),
        code: check.string(),
        message: check.string(),
      }),
    ],
  ],
  "Invalid discriminator value. Expected 'welcome' | 'pong' | 'result_ack' | 'cancel' | 'drain' | 'error'",
));

export type SignedExecute = z.output<typeof schemas.SignedExecute>;
export const SignedExecute: check.Check<SignedExecute> = check.of(check.object({
  type: shared1,
  requestId: shared4,
  generation: shared3,
  agentId: check.string(),
  organizationId: check.string(),
  userId: check.string(),
  kind: check.chain(
    check.string(),
    check.maxLength(64, "Too big: expected string to have <=64 characters"),
  ),
  payload: check.unknown(),
  secret: check.optional(check.chain(check.string(), shared2)),
  expiresAt: check.chain(
    check.string(),
    check.pattern(
      /^(?:(?:\d\d[2468][048]|\d\d[13579][26]|\d\d0[48]|[02468][048]00|[13579][26]00)-02-29|\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|(?:02)-(?:0[1-9]|1\d|2[0-8])))T(?:(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:Z))$/,
      "Invalid ISO datetime",
    ),
  ),
  timeoutMs: shared3,
  signature: check.string(),
  correlationId: check.optional(check.chain(
    check.string(),
    check.maxLength(200, "Too big: expected string to have <=200 characters"),
  )),
}));
