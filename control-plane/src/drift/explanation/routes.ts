// Explanations over HTTP, for operators.

import { explainNode } from "@holdfast/contracts/endpoints/drift";
import { ApiError } from "@holdfast/contracts/errors";
import type { ApiContext } from "../../api/context.ts";
import { orgRoute } from "../../api/route.ts";
import { classify } from "../classify/classify.ts";
import { readEvidence } from "../evidence/read.ts";
import { defaultPolicy } from "../policy.ts";
import { explain } from "./describe.ts";
import { selectIncidents, selectSubject } from "./queries.ts";

export function explanationRoutes(api: ApiContext): void {
  const policy = { ...defaultPolicy, heartbeatStaleAfterMs: api.nodes.staleAfterSeconds * 1000 };

  orgRoute(api, explainNode, async ({ tx, params: { node_id: id } }) => {
    const [subject, known, incidents] = await Promise.all([
      selectSubject(tx, id),
      readEvidence(tx, [id]),
      selectIncidents(tx, id),
    ]);
    if (!subject) throw new ApiError("not_found");
    const evidence = known.get(id) ?? [];
    const verdict = classify(evidence, policy, subject.now.getTime());
    return explain(subject, { evidence, verdict, incidents, now: subject.now });
  });
}
