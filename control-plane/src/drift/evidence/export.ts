// Observations in and out of files.

import { EvidenceFile, type FileObservation } from "@holdfast/contracts/public/evidence-file";
import { type Kind, kinds, type Observation, observedValues, observers } from "./observation.ts";

/** A file whose kinds and values this version knows. */
export const KnownEvidence = EvidenceFile.superRefine(({ observations }, context) => {
  for (const [index, { kind, value, observer }] of observations.entries()) {
    const complain = (field: string, message: string) =>
      context.addIssue({ code: "custom", path: ["observations", index, field], message });
    const known: readonly string[] | null | undefined = isKind(kind) ? observedValues[kind] : undefined;
    if (known === undefined) complain("kind", `one of ${kinds.join(", ")}`);
    else if (known !== null && !known.includes(value)) complain("value", `${kind} is one of ${known.join(", ")}`);
    if (!observers.some((one) => one === observer)) complain("observer", `one of ${observers.join(", ")}`);
  }
});

export function observationsIn({ observations }: EvidenceFile): Observation[] {
  return observations.map(({ observed_at, first_observed_at, received_at, ...rest }) => {
    const times = { observedAt: Date.parse(observed_at), receivedAt: Date.parse(received_at) };
    const firstAt = first_observed_at === undefined ? {} : { firstAt: Date.parse(first_observed_at) };
    return { ...rest, ...times, ...firstAt } as Observation;
  });
}

export function toFile(observation: Observation): FileObservation {
  const { id, kind, value, observer, observedAt, firstAt, receivedAt, key, detail } = observation;
  return {
    ...{ id, kind, value, observer },
    ...(key === undefined ? {} : { key }),
    observed_at: new Date(observedAt).toISOString(),
    ...(firstAt === undefined ? {} : { first_observed_at: new Date(firstAt).toISOString() }),
    received_at: new Date(receivedAt).toISOString(),
    ...(detail === undefined ? {} : { detail }),
  };
}

const isKind = (text: string): text is Kind => Object.hasOwn(observedValues, text);
