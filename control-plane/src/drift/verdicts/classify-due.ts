// Classifies the nodes whose turn it is: those with new evidence, and those whose verdict time alone may have changed. An
// idempotent function of what is stored; several may run at once.

import { uuidv7 } from "@holdfast/kit/uuid";
import type { Sql, Tx } from "../../database/connect.ts";
import { readBrake } from "../brake/read.ts";
import { classify, type Verdict } from "../classify/classify.ts";
import type { Policy } from "../classify/derive.ts";
import type { Observation } from "../evidence/observation.ts";
import { readPlatform } from "../evidence/platform.ts";
import { readEvidence } from "../evidence/read.ts";
import { type Change, writeIncidents } from "../incidents/write.ts";
import { type Gated, gate, type OpenIncident } from "../recovery/gate.ts";
import { readWork } from "../recovery/work.ts";
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
  /** Of the open incident. */
  proof_after: Date | null;
  opened_at: Date | null;
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
  const taken = await tx<Omit<Due, "proof_after" | "opened_at">[]>`
    SELECT node_id, org_id, causes, reporting, concat_ws(' ', management, workload, access) AS layers, incident_id, now() AS now
    FROM node_verdicts WHERE review_at <= now() ORDER BY review_at LIMIT ${BATCH} FOR UPDATE SKIP LOCKED`;
  if (taken.length === 0) return { classified: 0, changed: [], allocations: [] };
  const due = await withProof(tx, taken);
  const platform = await readPlatform(tx);
  const evidence = await readEvidence(
    tx,
    due.map(({ node_id }) => node_id),
    platform,
  );
  const verdicts = new Map(
    due.map(({ node_id, now }) => [node_id, classify(evidence.get(node_id) ?? [], policy, now.getTime())]),
  );
  const ending = due.filter(({ node_id, incident_id }) => incident_id !== null && isEmpty(verdicts.get(node_id)));
  const work = await readWork(
    tx,
    ending.map(({ node_id }) => node_id),
  );
  const results = due.map((one) => {
    const known = [...(evidence.get(one.node_id) ?? []), ...(work.get(one.node_id) ?? [])];
    const found = verdicts.get(one.node_id) ?? classify(known, policy, one.now.getTime());
    const { verdict, proofAfter, checklist } = gate(found, {
      ...{ evidence: known, incident: openIncident(one, found), policy, now: one.now.getTime() },
    });
    const causes = sinceFirstSeen(
      verdict.causes.map((cause) => storedCause(cause, known)),
      one.causes,
    );
    const layers = layersOf(verdict, known, one.now.getTime());
    const changed = !saysTheSame(one.causes, causes);
    const { management, workload, access } = layers;
    const different =
      changed || one.reporting !== verdict.reporting || one.layers !== `${management} ${workload} ${access}`;
    return { ...one, verdict, evidence: known, next: causes, layers, changed, different, proofAfter, checklist };
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
    async () => (await readBrake(tx, platform)).braked,
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

/** A statement of its own: joined, they are compared row by row as long as PostgreSQL knows nothing about the tables. */
async function withProof(tx: Tx, taken: readonly Omit<Due, "proof_after" | "opened_at">[]): Promise<Due[]> {
  const ids = taken.flatMap(({ incident_id }) => incident_id ?? []);
  const rows =
    ids.length === 0
      ? []
      : await tx<(Pick<Due, "proof_after" | "opened_at"> & { id: string })[]>`
          SELECT id, proof_after, opened_at FROM incidents WHERE id = ANY (${ids}::uuid[])`;
  const open = new Map(rows.map((row) => [row.id, row]));
  return taken.map((one) => {
    const { proof_after = null, opened_at = null } = open.get(one.incident_id ?? "") ?? {};
    return { ...one, proof_after, opened_at };
  });
}

/** A node that reports is looked for by the search for silent ones; its heartbeats need no review each. */
function reviewAt(verdict: Verdict, ofAllocations: number | undefined): string {
  const at = Math.min(verdict.reviewAt ?? Number.POSITIVE_INFINITY, ofAllocations ?? Number.POSITIVE_INFINITY);
  return Number.isFinite(at) ? new Date(at).toISOString() : "infinity";
}

const isEmpty = (verdict: Verdict | undefined) => verdict?.causes.length === 0;

/** With what was found before, and what is found now: an incident that is just opened may need proof already. */
function openIncident(
  { incident_id, proof_after, opened_at, causes }: Due,
  found: Verdict,
): OpenIncident | undefined {
  if (incident_id === null && isEmpty(found)) return undefined;
  const present = found.causes.map(({ reason, evidence }) => ({ reason, observed: evidence }));
  const times = { proofAfter: proof_after?.getTime() ?? null, openedAt: opened_at?.getTime() ?? null };
  return { ...times, causes: [...causes, ...present] };
}

type Result = Pick<Due, "node_id" | "org_id" | "incident_id"> & {
  next: StoredCause[];
  evidence: readonly Observation[];
} & Pick<Gated, "proofAfter" | "checklist">;

function changeOf(one: Result): Change {
  const {
    node_id: nodeId,
    org_id: orgId,
    incident_id: before,
    next: causes,
    evidence,
    proofAfter,
    checklist,
  } = one;
  const open = before ?? (causes.length > 0 ? uuidv7() : null);
  const incident = { before, after: causes.length > 0 ? open : null };
  return { nodeId, orgId, causes, evidence, incident, proofAfter, proof: checklist };
}
