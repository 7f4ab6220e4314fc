// Generated from phase-record.schema.ts by `npm run generate`; do not edit.

import * as check from "@holdfast/kit/checks";
import type { z } from "zod";
import type * as schemas from "./phase-record.schema.ts";

export type PhaseRecord = z.output<typeof schemas.PhaseRecord>;
export const PhaseRecord: check.Check<PhaseRecord> = check.of(check.strictObject({
  state: check.oneOf(
    ["making", "made", "undoing"],
    "Invalid option: expected one of \"making\"|\"made\"|\"undoing\"",
  ),
  phases: check.array(check.strictObject({name: check.string(), plan: check.unknown()})),
}));
