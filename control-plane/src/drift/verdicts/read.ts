// Verdicts for lists, as the worker stored them, and of one node, classified from the evidence of this moment.

import type { LayerState } from "@holdfast/contracts/endpoints/drift";
import type { UserState } from "@holdfast/contracts/reasons/vocabulary";
import type { Tx } from "../../database/connect.ts";
import { classify } from "../classify/classify.ts";
import type { Policy } from "../classify/derive.ts";
import type { Observation } from "../evidence/observation.ts";
import type { PlatformRow } from "../evidence/platform.ts";
import { readEvidence } from "../evidence/read.ts";
import { gate } from "../recovery/gate.ts";
import { readOpenIncidents } from "../recovery/open-incidents.ts";
import { readWork } from "../recovery/work.ts";
import type { CurrentVerdict } from "./current.ts";
import { layersOf } from "./layers.ts";
import { type StoredCause, storedCause } from "./stored.ts";

/** A row of `node_verdicts`; all null without one. */
export type VerdictRow = {
  causes: StoredCause[] | null;
  user_state: UserState | null;
  reporting: boolean | null;
  management: LayerState | null;
  workload: LayerState | null;
  access: LayerState | null;
};

export type ClassifiedRow = VerdictRow & { node_id: string };

/** Without those that were never classified. */
export async function selectVerdicts(tx: Tx, ids: readonly string[]): Promise<ClassifiedRow[]> {
  return tx<ClassifiedRow[]>`
    SELECT node_id, causes, user_state, reporting, management, workload, access FROM node_verdicts
    WHERE node_id = ANY(${ids as string[]}::uuid[]) AND classified_at > '-infinity'`;
}

export function verdictIn(row: VerdictRow): Omit<CurrentVerdict, "pending"> | undefined {
  const { causes, user_state, reporting, management, workload, access } = row;
  if (!causes || !user_state || reporting === null || !management || !workload || !access) return undefined;
  return { causes, userState: user_state, reporting, layers: { management, workload, access } };
}

/** Of one node that somebody looks at: nothing stored can be newer. */
export async function verdictNow(
  tx: Tx,
  nodeId: string,
  { platform, policy, now }: { platform: readonly PlatformRow[]; policy: Policy; now: Date },
): Promise<CurrentVerdict> {
  const [known, open] = await Promise.all([readEvidence(tx, [nodeId], platform), readOpenIncidents(tx, [nodeId])]);
  const incident = open.get(nodeId);
  const work = incident ? await readWork(tx, [nodeId]) : new Map<string, Observation[]>();
  const evidence = [...(known.get(nodeId) ?? []), ...(work.get(nodeId) ?? [])];
  const found = classify(evidence, policy, now.getTime());
  const { verdict } = gate(found, { evidence, incident, policy, now: now.getTime() });
  return {
    ...{ userState: verdict.userState, reporting: verdict.reporting, pending: false },
    causes: verdict.causes.map((cause) => storedCause(cause, evidence)),
    layers: layersOf(verdict, evidence, now.getTime()),
  };
}
