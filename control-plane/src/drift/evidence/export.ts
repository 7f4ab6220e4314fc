// Evidence as a file: what was known of a node at a time. Today's classifier can be run over it again, so that every
// misdiagnosis becomes a test.

import { z } from "zod";
import type { Policy } from "../classify/derive.ts";
import { type Kind, kinds, type Observation, observedValues, observers } from "./observation.ts";

const Code = z.string().regex(/^[a-z0-9_]{1,64}$/, "a code: lower-case letters, digits and underscores");
const Time = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));

const ObservationFile = z
  .strictObject({
    id: z.string().min(1).max(64),
    kind: z.enum(kinds),
    key: z.string().max(64).optional(),
    value: Code,
    observer: z.enum(observers),
    observed_at: Time,
    received_at: Time,
    detail: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])).optional(),
  })
  .superRefine(({ kind, value }, context) => {
    const known: readonly string[] | null = observedValues[kind];
    if (known === null || known.includes(value)) return;
    context.addIssue({ code: "custom", path: ["value"], message: `${kind} is one of ${known.join(", ")}` });
  });

const Milliseconds = z.int().nonnegative();
export const EvidenceFile = z.strictObject({
  format: z.literal("holdfast-evidence/1"),
  /** When the evidence is judged. */
  at: Time,
  /** Limits that differ from the defaults. */
  policy: z
    .strictObject({
      heartbeatStaleAfterMs: Milliseconds,
      reconnectWithinMs: Milliseconds,
      returnExpectedWithinMs: Milliseconds,
      clockToleranceMs: Milliseconds,
      diskPressurePercent: z.number(),
      diskFullPercent: z.number(),
    } satisfies Record<keyof Policy, z.ZodType>)
    .partial()
    .default({}),
  observations: z.array(ObservationFile).max(10_000),
});

export function observationsOf({ observations }: z.infer<typeof EvidenceFile>): Observation[] {
  return observations.map(({ observed_at, received_at, kind, value, ...rest }) => {
    const seen = { ...rest, kind: kind as Kind, value, observedAt: observed_at, receivedAt: received_at };
    return seen as Observation;
  });
}
