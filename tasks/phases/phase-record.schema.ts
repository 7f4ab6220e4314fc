// The form of a phase record. The agent reads it by phase-record.generated.ts, which is made from this.

import { z } from "zod";

export const PhaseRecord = z.strictObject({
  state: z.enum(["making", "made", "undoing"]),
  phases: z.array(z.strictObject({ name: z.string(), plan: z.unknown() })),
});
