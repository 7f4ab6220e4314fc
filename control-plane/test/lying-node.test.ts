// A node that was taken over holds a good certificate and may say anything. Whatever it says stays its
// own problem: it is stored or refused by its form, and never stands in the way of what comes after it.

import {
  type Allocation,
  createAllocation,
  getAllocation,
  releaseAllocation,
} from "@holdfast/contracts/endpoints/allocations";
import { getNode } from "@holdfast/contracts/endpoints/nodes";
import { createTask, getTask } from "@holdfast/contracts/endpoints/tasks";
import { MOST_PHASES, type Outcome } from "@holdfast/contracts/node/protocol";
import { beforeAll, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg } from "../../testkit/api/api.ts";
import { enrollTestNode, hostFacts, sendHeartbeatFrom, type TestNode } from "../../testkit/api/nodes.ts";

let api: TestApi;
let org: TestOrg;
let node: TestNode;

beforeAll(async () => {
  api = await startTestApi();
  org = await createOrg(api, "ours");
  node = await enrollTestNode(api, org.id);
  await sendHeartbeatFrom(node);
});

async function tell(taskId: string | null, outcome: Outcome): Promise<void> {
  const body = { generation: 1, timings: {}, outcome };
  const path = node.path(`tasks/${taskId}/result`);
  expect(await node.client.ask({ method: "POST", path, body })).toMatchObject({ body: { verdict: "accepted" } });
}

const failedWith = (message: string): Outcome => ({
  status: "failed",
  failure: { code: "made\0up", message, next_step: "Nothing\0\udc00." },
});

const allocate = (username: string) =>
  api.operator(org.id)(createAllocation, { body: { node_id: node.id, username } });

async function changed({ id, revision }: Allocation): Promise<Allocation> {
  const query = { wait_seconds: 25, revision };
  return api.operator(org.id)(getAllocation, { params: { allocation_id: id }, query });
}

describe("text that PostgreSQL does not store", () => {
  it("AGENT-06 in a heartbeat is replaced, and the node stays in sight", async () => {
    const answer = await sendHeartbeatFrom(node, { facts: { ...hostFacts, hostname: "half \ud800 a character" } });
    expect(answer.status).toBe(200);
    const shown = await api.operator(org.id)(getNode, { params: { node_id: node.id } });
    expect(shown.facts?.hostname).toBe("half \ufffd a character");
  });

  it("BM-03 in a failure does not keep an allocation from failing, and from being released", async () => {
    const asked = await allocate("anna");
    await tell(asked.task_id, failedWith("no\0 room \ud800"));
    const failed = await changed(asked);
    expect(failed).toMatchObject({
      status: "failed",
      reason: { code: "madeup", message: "no room \ufffd", next_step: "Nothing\ufffd." },
    });
    const released = await api.operator(org.id)(releaseAllocation, { params: { allocation_id: asked.id } });
    await tell(released.task_id, failedWith("not now\0"));
    expect(await changed(released)).toMatchObject({ status: "failed", reason: { message: "not now" } });
  });

  it("BM-01 in a user's home is no result of the type", async () => {
    const asked = await allocate("bert");
    const user = { username: "bert", uid: 70_000, gid: 70_000, shell: "/bin/sh", created: true };
    await tell(asked.task_id, {
      status: "succeeded",
      result: { ...user, home: "/home/be\0rt", own_account: false, keys: 0 },
    });
    expect(await changed(asked)).toMatchObject({ status: "failed", reason: { code: "result_invalid" } });
  });
});

describe("more than there is room for", () => {
  it("TASK-09 in the timings of a task is refused by its form", async () => {
    const task = await api.operator(org.id)(createTask, {
      params: { node_id: node.id },
      body: { type: "node.noop" },
    });
    await node.client.ask({ path: `${node.path("tasks/wait")}?wait=0&room=32` });
    const tellPhases = (count: number) => {
      const timings = Object.fromEntries(Array.from({ length: count }, (_, n) => [`phase ${n}`, n]));
      const body = { generation: 1, phase: "last", timings };
      return node.client.ask({ method: "POST", path: node.path(`tasks/${task.id}/progress`), body });
    };
    expect(await tellPhases(MOST_PHASES)).toMatchObject({ status: 200, body: { cancel: false } });
    expect(await tellPhases(MOST_PHASES + 1)).toMatchObject({ status: 400, body: { code: "invalid_request" } });
    const { timings } = await api.operator(org.id)(getTask, { params: { task_id: task.id } });
    expect(Object.keys(timings)).toHaveLength(MOST_PHASES);
  });
});
