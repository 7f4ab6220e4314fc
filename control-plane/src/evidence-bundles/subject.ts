// What a bundle is about, and everything that belongs to it. Runs confined to one organization: what is not in it is not found.

import { type EvidenceSubject, MANIFEST } from "@holdfast/contracts/public/evidence-bundle";
import { uuidForm } from "@holdfast/kit/uuid";
import { callerSql, reaches } from "../allocations/access.ts";
import type { Tx } from "../database/connect.ts";
import { type Resolved, resolve, type Viewer } from "../drift/trace/resolve.ts";

export type Subject = {
  type: EvidenceSubject;
  id: string;
  name: string | null;
  nodeIds: string[];
  /** Null: of all allocations. */
  allocationId: string | null;
  /** For the timeline. */
  resolved: Resolved;
};

/** Of a node or an allocation. A bundle is for what happened lately. */
const MOST_INCIDENTS = 10;
const MOST_TERMINALS = 20;

type Named = { id: string; name: string | null; node_id: string | null };

/** Undefined: nothing is recorded under this id. */
export async function findSubject(tx: Tx, id: string, viewer: Viewer): Promise<Subject | undefined> {
  const uuid = uuidForm.test(id.toLowerCase()) ? id.toLowerCase() : null;
  const [node] = await tx<Named[]>`SELECT id, name, id AS node_id FROM nodes WHERE id = ${uuid}::uuid`;
  if (node) return ofNode(tx, "node", node);
  const [allocation] = await tx<Named[]>`
    SELECT a.id, a.username AS name, a.node_id FROM allocations a
    WHERE a.id = ${uuid}::uuid AND ${reaches(tx, callerSql(tx, viewer.caller), "view")}`;
  if (allocation) return ofNode(tx, "allocation", allocation);
  const resolved = await resolve(tx, id, viewer);
  const isIncident = resolved.foundAs.includes("incident");
  if (resolved.foundAs.length === 0) return undefined;
  const nodes = await tx<{ id: string; name: string }[]>`
    SELECT DISTINCT n.id, n.name FROM nodes n WHERE n.id IN (
      SELECT node_id FROM incidents WHERE id = ANY(${resolved.incidentIds}::uuid[])
      UNION SELECT node_id FROM tasks WHERE id = ANY(${resolved.taskIds}::uuid[])
      UNION SELECT node_id FROM node_observations WHERE correlation_id = ANY(${resolved.correlationIds}::text[])
      UNION SELECT node_id FROM terminal_sessions WHERE correlation_id = ANY(${resolved.correlationIds}::text[])
        OR failure ->> 'correlation_id' = ANY(${resolved.correlationIds}::text[]))
    ORDER BY n.id LIMIT 20`;
  return {
    ...{ type: isIncident ? "incident" : "correlation", id, name: nodes[0]?.name ?? null },
    ...{ nodeIds: nodes.map((one) => one.id), allocationId: null, resolved },
  };
}

/** An id that only log lines have. */
export function loggedSubject(id: string): Subject {
  const resolved: Resolved = {
    foundAs: [],
    incidentIds: [],
    correlationIds: [id],
    taskIds: [],
    allocationId: null,
  };
  return { type: "correlation", id, name: null, nodeIds: [], allocationId: null, resolved };
}

async function ofNode(tx: Tx, type: "node" | "allocation", { id, name, node_id }: Named): Promise<Subject> {
  const nodeId = node_id ?? id;
  const allocationId = type === "allocation" ? id : null;
  const incidents = await tx<{ id: string; episodes: string[] }[]>`
    SELECT id, episodes FROM incidents WHERE node_id = ${nodeId} ORDER BY opened_at DESC LIMIT ${MOST_INCIDENTS}`;
  const terminals = await tx<{ correlation_id: string; failed: string | null; task_id: string | null }[]>`
    SELECT correlation_id, failure ->> 'correlation_id' AS failed, task_id FROM terminal_sessions
    WHERE node_id = ${nodeId} AND (${allocationId}::uuid IS NULL OR allocation_id = ${allocationId}::uuid)
    ORDER BY id DESC LIMIT ${MOST_TERMINALS}`;
  const correlationIds = [
    ...incidents.flatMap(({ id: incident, episodes }) => [incident, ...episodes]),
    ...terminals.flatMap(({ correlation_id, failed }) => [correlation_id, ...(failed === null ? [] : [failed])]),
  ];
  return {
    ...{ type, id, name, nodeIds: [nodeId], allocationId },
    resolved: {
      foundAs: [],
      incidentIds: incidents.map((one) => one.id),
      correlationIds: [...new Set(correlationIds)],
      taskIds: terminals.flatMap(({ task_id }) => task_id ?? []),
      allocationId,
    },
  };
}

/** Whose log lines go into the bundle. Lines of other allocations name the node, too. */
export function loggedIds({ id, nodeIds, allocationId, resolved }: Subject): string[] {
  const { correlationIds, incidentIds, taskIds } = resolved;
  const nodes = allocationId === null ? nodeIds : [];
  return [...new Set([id, ...nodes, ...correlationIds, ...incidentIds, ...taskIds])].slice(0, 200);
}

export function fileNameOf({ type, id }: Pick<Subject, "type" | "id">, createdAt: Date): string {
  const safe = id.replace(/[^\w-]/g, "_");
  return `evidence-${type}-${safe}-${createdAt.toISOString().replace(/[-:]|\.\d+/g, "")}.tar.gz`;
}

export const README = (
  subject: Subject,
  paths: readonly { path: string; title: string }[],
) => `Holdfast evidence bundle
About: ${subject.type} ${subject.id}${subject.name === null ? "" : ` (${subject.name})`}

${[{ path: MANIFEST, title: "what is in the bundle, with SHA-256 of each file, signed" }, ...paths]
  .map(({ path, title }) => `${path.padEnd(28)} ${title}`)
  .join("\n")}

Verify it:            holdfast evidence verify FILE --key KID
The key's kid:        holdfast evidence key
Classify it again:    holdfast evidence replay FILE
Read it:              tar -xzf FILE

Times are UTC. Secrets were redacted before the bundle was created.
`;
