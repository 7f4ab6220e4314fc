// Classifies the evidence in a bundle again, and compares the result with what was recorded. Pure.

import { EvidenceFile } from "@holdfast/contracts/public/evidence-file";
import type { TarFile } from "@holdfast/kit/tar";
import { z } from "zod";
import { classify } from "../../drift/classify/classify.ts";
import type { Policy } from "../../drift/classify/derive.ts";
import { observationsIn } from "../../drift/evidence/export.ts";

export const CLASSIFICATION = "classification.json";

/** Of a stored cause, what a verdict says. `missing`: a recovery is being verified, which is decided behind the classifier. */
const RecordedCause = z.object({
  reason: z.string(),
  signal: z.string().nullable(),
  confidence: z.string(),
  severity: z.string(),
  userState: z.string(),
  owner: z.string(),
  nextAction: z.string(),
  symptoms: z.array(z.string()),
  missing: z.array(z.string()).optional(),
});

export const Classification = z.object({
  policy: z.record(z.string(), z.number()).describe("The limits by which the installation classified."),
  verdicts: z.array(
    z.object({
      node_id: z.string().nullable(),
      incident_id: z.string().nullable().describe("Null: the verdict when the bundle was created."),
      at: z.string(),
      causes: z.array(RecordedCause.loose()),
      evidence: EvidenceFile,
    }),
  ),
});
export type Classification = z.infer<typeof Classification>;

export type Replayed = {
  node_id: string | null;
  incident_id: string | null;
  at: string;
  /** Reasons, worst first. */
  recorded: string[];
  replayed: string[];
  same: boolean;
};

/** Throws if the bundle has no classification in this form. */
export function replayBundle(files: readonly TarFile[]): Replayed[] {
  const file = files.find(({ path }) => path === CLASSIFICATION);
  if (!file) throw new Error(`the bundle has no ${CLASSIFICATION}`);
  const { policy, verdicts } = Classification.parse(JSON.parse(file.content.toString("utf8")));
  return verdicts.map(({ node_id, incident_id, at, causes, evidence }) => {
    const now = Date.parse(at);
    const found = classify(observationsIn(evidence), policy as Policy, now).causes;
    const recorded = causes.filter(({ missing }) => missing === undefined);
    return {
      ...{ node_id, incident_id, at, recorded: causes.map(({ reason }) => reason) },
      replayed: found.map(({ reason }) => reason),
      same: textOf(recorded) === textOf(found),
    };
  });
}

type Said = Omit<z.infer<typeof RecordedCause>, "missing" | "symptoms"> & { symptoms: readonly string[] };

const textOf = (causes: readonly Said[]) =>
  JSON.stringify(
    causes.map(({ reason, signal, confidence, severity, userState, owner, nextAction, symptoms }) => [
      ...[reason, signal, confidence, severity, userState, owner, nextAction],
      ...symptoms,
    ]),
  );
