// Generated from credentials.schema.ts by `npm run generate`; do not edit.

import * as check from "@holdfast/kit/checks";
import type { z } from "zod";
import type * as schemas from "./credentials.schema.ts";

const shared1 = check.minLength(1, "Too small: expected string to have >=1 characters");
const shared2 = check.maxLength(64, "Too big: expected string to have <=64 characters");
const shared3 = check.maxLength(2000, "Too big: expected string to have <=2000 characters");
const shared4 = check.refine((text) => !text.includes("\0"), "must not contain a NUL character");
const shared5 = check.chain(check.number(), check.integer(), check.above(0, "Too small: expected number to be >0"));
const shared6 = check.refine(
  (text) => text.isWellFormed(),
  "must be valid Unicode: it contains half of a surrogate pair",
);
const shared7 = check.array(check.looseObject({kid: check.string(), kty: check.string(), crv: check.string(), x: check.string()}));
const shared8 = check.object({version: shared5, keys: shared7});
const shared9 = check.chain(
  check.string(),
  shared4,
  shared6,
  shared3,
  check.pattern(/^wss?:[/][/]./, "not a ws:// or wss:// URL"),
);
const shared10 = check.chain(
  check.string(),
  shared4,
  shared6,
  shared1,
  check.maxLength(120, "Too big: expected string to have <=120 characters"),
);
const shared11 = check.chain(
  check.string(),
  shared4,
  shared6,
  check.maxLength(300, "Too big: expected string to have <=300 characters"),
  check.pattern(/^[!-~]+[.][!-~]+$/, "not a token of the form <organization id>.<secret>"),
);
const shared12 = check.pipe(
  check.chain(check.string(), check.overwrite((input) => input.toLowerCase())),
  check.chain(
    check.string("not an id; ids look like 01a1e13c-bc3d-71c5-9b58-aada3c2346d4"),
    check.pattern(
      /^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}|00000000-0000-0000-0000-000000000000|ffffffff-ffff-ffff-ffff-ffffffffffff)$/,
      "not an id; ids look like 01a1e13c-bc3d-71c5-9b58-aada3c2346d4",
    ),
  ),
);

export type CredentialsFile = z.output<typeof schemas.CredentialsFile>;
export const CredentialsFile: check.Check<CredentialsFile> = check.of(check.object({
  agentId: shared12,
  agentToken: shared11,
  organizationId: shared12,
  gatewayWsUrl: shared9,
  apiBaseUrl: check.chain(check.string(), shared4, shared6, shared3),
  name: shared10,
  agentVersion: check.optional(check.chain(check.string(), shared4, shared6, shared2)),
  capabilities: check.optional(check.object({
    kinds: check.array(
      check.chain(check.string(), shared4, shared6, shared1, shared2),
      [[32, "Too big: expected array to have <=32 items"]],
    ),
    connectors: check.optional(check.array(shared10, [[500, "Too big: expected array to have <=500 items"]])),
    tags: check.optional(check.array(
      check.chain(
        check.string(),
        shared4,
        shared6,
        shared1,
        check.maxLength(128, "Too big: expected string to have <=128 characters"),
      ),
      [[100, "Too big: expected array to have <=100 items"]],
    )),
    maxInFlight: check.optional(check.chain(
      check.number(),
      check.integer(),
      check.min(1, "Too small: expected number to be >=1"),
      check.max(1000, "Too big: expected number to be <=1000"),
    )),
  })),
  keySet: check.optional(shared8),
  pairedWith: check.optional(check.string()),
}));

export type Paired = z.output<typeof schemas.Paired>;
export const Paired: check.Check<Paired> = check.of(check.object({
  agentId: shared12,
  agentToken: shared11,
  organizationId: shared12,
  gatewayWsUrl: shared9,
  keySet: check.optional(check.object({version: shared5, content: check.object({keys: shared7})})),
}));

export type PinnedKeySet = z.output<typeof schemas.PinnedKeySet>;
export const PinnedKeySet: check.Check<PinnedKeySet> = check.of(shared8);
