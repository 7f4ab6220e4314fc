// Explanations over HTTP, for operators, and the evidence that they hand in.

import { addNodeEvidence, type Explanation, explainNode } from "@holdfast/contracts/endpoints/drift";
import { ApiError } from "@holdfast/contracts/errors";
import type { ApiContext } from "../../api/context.ts";
import { orgRoute } from "../../api/route.ts";
import type { Tx } from "../../database/connect.ts";
import { selectClone } from "../../nodes/holders/present.ts";
import { classify } from "../classify/classify.ts";
import { readPlatform } from "../evidence/platform.ts";
import { readEvidence } from "../evidence/read.ts";
import { recordObservationsIn } from "../evidence/write.ts";
import { observationsHandedIn } from "../observers/handed-in.ts";
import { gate } from "../recovery/gate.ts";
import { readOpenIncidents } from "../recovery/open-incidents.ts";
import { readWork } from "../recovery/work.ts";
import { explain } from "./describe.ts";
import { type Subject, selectIncidents, selectPartOf, selectSubject } from "./queries.ts";

export function explanationRoutes(api: ApiContext): void {
  const explanationOf = async (tx: Tx, subject: Subject): Promise<Explanation> => {
    const { id, now } = subject;
    const platform = await readPlatform(api.system);
    const [known, work, incidents, partOf, open] = await Promise.all([
      readEvidence(tx, [id], platform),
      readWork(tx, [id]),
      selectIncidents(tx, id),
      selectPartOf(tx, id),
      readOpenIncidents(tx, [id]),
    ]);
    const evidence = [...(known.get(id) ?? []), ...(work.get(id) ?? [])];
    const { policy } = api;
    const found = classify(evidence, policy, now.getTime());
    const isCloned = found.causes.some(({ reason }) => reason === "cloned_identity_detected");
    const clone = isCloned ? await selectClone(tx, id) : null;
    const gated = gate(found, { evidence, incident: open.get(id), policy, now: now.getTime() });
    return explain(subject, { evidence, ...gated, incidents, partOf, clone, policy, now });
  };

  orgRoute(api, explainNode, async ({ tx, params }) => explanationOf(tx, await required(tx, params.node_id)));

  orgRoute(api, addNodeEvidence, async ({ tx, params, body, correlationId, touched, afterCommit }) => {
    const subject = await required(tx, params.node_id);
    const { id, name, now } = subject;
    const observations = observationsHandedIn(id, body, { now, correlationId });
    const changed = await recordObservationsIn(tx, observations);
    touched({ type: "node", id, name }, { kinds: [...new Set(observations.map(({ kind }) => kind))] });
    afterCommit(() => api.signals.publish("evidence", changed));
    return explanationOf(tx, subject);
  });
}

async function required(tx: Tx, nodeId: string): Promise<Subject> {
  const subject = await selectSubject(tx, nodeId);
  if (!subject) throw new ApiError("not_found");
  return subject;
}
