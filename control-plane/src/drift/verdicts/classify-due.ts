// Classifies the nodes whose turn it is: those with new evidence, and those whose verdict time alone may have changed. An
// idempotent function of what is stored; several may run at once.

import { uuidv7 } from "@holdfast/kit/uuid";
import type { Sql, Tx } from "../../database/connect.ts";
import { classify, type Verdict } from "../classify/classify.ts";
import type { Policy } from "../classify/derive.ts";
import type { Observation } from "../evidence/observation.ts";
import { readPlatform } from "../evidence/platform.ts";
import { readEvidence } from "../evidence/read.ts";
import { type Change, writeIncidents } from "../incidents/write.ts";
import { fanOut } from "../tenants/fan-out.ts";
import { layersOf } from "./layers.ts";
import { type StoredCause, saysTheSame, sinceFirstSeen, storedCause } from "./stored.ts";

/** As many at once as are read and written in some ten milliseconds. */
const BATCH = 500;

type Due = {
  node_id: string;
  org_id: string;
  causes: StoredCause[];
  reporting: boolean;
  layers: string;
  incident_id: string | null;
  now: Date;
};

export type Classified = {
  classified: number;
  /** Nodes that look different now: other causes, another state of a layer, or back. */
  changed: string[];
  /** Allocations whose user state changed. */
  allocations: string[];
};

export async function classifyDue(system: Sql, policy: Policy): Promise<Classified> {
  const all: Classified = { classified: 0, changed: [], allocations: [] };
  for (;;) {
    const { classified, changed, allocations } = await system.begin((tx) => classifySome(tx, policy));
    all.classified += classified;
    all.changed.push(...changed);
    all.allocations.push(...allocations);
    if (classified < BATCH) return all;
  }
}

async function classifySome(tx: Tx, policy: Policy): Promise<Classified> {
  const due = await tx<Due[]>`
    SELECT node_id, org_id, causes, reporting, concat_ws(' ', management, workload, access) AS layers, incident_id,
           now() AS now
    FROM node_verdicts
    WHERE review_at <= now() ORDER BY review_at LIMIT ${BATCH} FOR UPDATE SKIP LOCKED`;
  if (due.length === 0) return { classified: 0, changed: [], allocations: [] };
  const evidence = await readEvidence(
    tx,
    due.map(({ node_id }) => node_id),
    await readPlatform(tx),
  );
  const results = due.map((one) => {
    const known = evidence.get(one.node_id) ?? [];
    const verdict = classify(known, policy, one.now.getTime());
    const causes = sinceFirstSeen(
      verdict.causes.map((cause) => storedCause(cause, known)),
      one.causes,
    );
    const layers = layersOf(verdict, known, one.now.getTime());
    const changed = !saysTheSame(one.causes, causes);
    const { management, workload, access } = layers;
    const different =
      changed || one.reporting !== verdict.reporting || one.layers !== `${management} ${workload} ${access}`;
    return { ...one, verdict, evidence: known, next: causes, layers, changed, different };
  });
  const changes = results.filter(({ changed }) => changed).map(changeOf);
  await writeIncidents(tx, changes);
  const incidentOf = new Map(changes.map(({ nodeId, incident }) => [nodeId, incident]));
  const fannedOut = await fanOut(
    tx,
    results.map(({ node_id: nodeId, verdict: { causes }, incident_id, now }) => {
      // What ends an incident belongs to it, too.
      const incident = incidentOf.get(nodeId);
      return {
        nodeId,
        causes,
        incidentId: incident?.after ?? incident?.before ?? incident_id,
        now: now.getTime(),
      };
    }),
  );
  await tx`
    UPDATE node_verdicts v SET review_at = r.review_at, classified_at = now(), reporting = r.reporting, user_state = r.user_state,
      causes = r.causes::json, management = r.management, workload = r.workload, access = r.access,
      incident_id = r.incident_id, changed_at = CASE WHEN r.changed THEN now() ELSE v.changed_at END
    FROM unnest(
      ${results.map(({ node_id }) => node_id)}::uuid[], ${results.map((one) => reviewAt(one.verdict, fannedOut.reviewAt.get(one.node_id)))}::timestamptz[],
      ${results.map(({ verdict }) => verdict.reporting)}::boolean[],
      ${results.map(({ verdict }) => verdict.userState)}::text[],
      ${results.map(({ next }) => JSON.stringify(next))}::text[],
      ${results.map(({ layers }) => layers.management)}::text[], ${results.map(({ layers }) => layers.workload)}::text[],
      ${results.map(({ layers }) => layers.access)}::text[],
      ${results.map((one) => (one.changed ? incidentOf.get(one.node_id)?.after : one.incident_id) ?? null)}::uuid[],
      ${results.map(({ changed }) => changed)}::boolean[]
    ) AS r (node_id, review_at, reporting, user_state, causes, management, workload, access, incident_id, changed)
    WHERE v.node_id = r.node_id`;
  const changed = results.filter(({ different }) => different).map(({ node_id }) => node_id);
  return { classified: due.length, changed, allocations: fannedOut.changed };
}

/** A node that reports is looked for by the search for silent ones; its heartbeats need no review each. */
function reviewAt(verdict: Verdict, ofAllocations: number | undefined): string {
  const at = Math.min(verdict.reviewAt ?? Number.POSITIVE_INFINITY, ofAllocations ?? Number.POSITIVE_INFINITY);
  return Number.isFinite(at) ? new Date(at).toISOString() : "infinity";
}

function changeOf(
  one: Pick<Due, "node_id" | "org_id" | "incident_id"> & { next: StoredCause[]; evidence: readonly Observation[] },
): Change {
  const { node_id: nodeId, org_id: orgId, incident_id: before, next: causes, evidence } = one;
  const open = before ?? (causes.length > 0 ? uuidv7() : null);
  return { nodeId, orgId, causes, evidence, incident: { before, after: causes.length > 0 ? open : null } };
}
