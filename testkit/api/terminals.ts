// A place for terminals: an enrolled node with a heartbeat and an allocation, and functions that act as the node.

import type { TaskOffer } from "@holdfast/contracts/node/protocol";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Sql } from "../../control-plane/src/database/connect.ts";
import type { TestApi, TestOrg } from "./api.ts";
import { enrollTestNode, hostFacts, sendHeartbeatFrom, type TestNode } from "./nodes.ts";

export type Place = { node: TestNode; allocationId: string; username: string };

export async function newPlace(api: TestApi, superuser: Sql, org: TestOrg, owner: TestOwner = {}): Promise<Place> {
  const node = await enrollTestNode(api, org.id, { hostname: `reef-${uuidv7().slice(-8)}` });
  await sendProfileHeartbeat(node, node.enrolled.profile.version);
  return { node, ...(await newAllocation(superuser, org, node.id, owner)) };
}

/** A person or an API token; neither: only administrators reach it. */
export type TestOwner = { userId?: string; tokenId?: string };

export async function newAllocation(superuser: Sql, org: TestOrg, nodeId: string, owner: TestOwner = {}) {
  const id = uuidv7();
  const username = `u${id.slice(-8)}`;
  await superuser`
    INSERT INTO allocations (id, org_id, project_id, node_id, username, status, created_by, active_at, owner_user_id,
      owner_token_id, owner_name, actor_type, actor_name, role)
    SELECT ${id}, ${org.id}, id, ${nodeId}, ${username}, 'active', 'somebody', now(), ${owner.userId ?? null},
      ${owner.tokenId ?? null}, ${owner.userId || owner.tokenId ? "somebody" : null}, 'system', 'test', 'system'
    FROM projects WHERE org_id = ${org.id} ORDER BY id LIMIT 1`;
  return { allocationId: id, username };
}

/** A heartbeat in which the node reports its profile; returns the newest version. */
export async function sendProfileHeartbeat(node: TestNode, version: number): Promise<number> {
  const { body } = await sendHeartbeatFrom(node, {
    facts: hostFacts,
    profile: { name: "default", version },
  });
  return (body["profile"] as { version: number } | undefined)?.version ?? version;
}

/** The next task that the node is offered. */
export async function takeTask(node: TestNode): Promise<TaskOffer> {
  const { body } = await node.client.ask({ path: node.path("tasks/wait?wait=20&room=1") });
  const [task] = body["tasks"] as TaskOffer[];
  if (!task) throw new Error(`the node was offered no task: ${JSON.stringify(body)}`);
  return task;
}

export async function endTask(
  node: TestNode,
  { task_id, generation }: Pick<TaskOffer, "task_id" | "generation">,
  outcome: object,
): Promise<void> {
  const body = { results: [{ task_id, generation, timings: {}, outcome }] };
  await node.client.ask({ method: "POST", path: node.path("results"), body });
}

export const opened = { status: "succeeded", result: { pid: 4711, offset: 0 } };
export const failedWith = (code: string, message = "", status = "failed") => ({
  status,
  failure: { code, message, next_step: "" },
});
