// The key that signs tasks is rotated under a node that works: nothing it was given before or after is refused.

import { createEnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import { getNode } from "@holdfast/contracts/endpoints/nodes";
import { rotateTaskSigningKey } from "@holdfast/contracts/endpoints/task-signing-keys";
import { createTask } from "@holdfast/contracts/endpoints/tasks";
import { beforeAll, describe, expect, it } from "vitest";
import { startTestAgent } from "../../testkit/agent/agent.ts";
import { someFacts } from "../../testkit/agent/facts.ts";
import { scratchDirectory } from "../../testkit/agent/scratch.ts";
import { createOrg, startTestApi, type TestApi, type TestOrg } from "../../testkit/api/api.ts";
import { endedTask } from "../../testkit/api/ended-task.ts";
import { openRoles } from "../../testkit/database/database.ts";
import { type AgentFile, readAgentFile, writeAgentFile } from "../src/identity/agent-file.ts";
import { join } from "../src/identity/join.ts";
import { stateFiles } from "../src/identity/state-directory.ts";

let api: TestApi;
let org: TestOrg;
let superuser: ReturnType<typeof openRoles>["superuser"];

beforeAll(async () => {
  api = await startTestApi();
  ({ superuser } = openRoles(api.database));
  org = await createOrg(api, "rotating");
});

const ask = (server: TestApi, nodeId: string, echo: string) =>
  server.operator(org.id)(createTask, {
    params: { node_id: nodeId },
    body: { type: "node.noop", params: { echo }, expires_in_seconds: 600 },
  });
const ended = (taskId: string) => endedTask(api.operator(org.id), taskId);

async function signedWith(taskId: string): Promise<string> {
  const [row] = await superuser<{ signature: string }[]>`SELECT signature FROM tasks WHERE id = ${taskId}`;
  const header = Buffer.from(row?.signature.split(".")[0] ?? "", "base64url").toString();
  return (JSON.parse(header) as { kid: string }).kid;
}

describe("rotation of the task-signing key", () => {
  it("TASK-03 a node learns the next key by its heartbeat, and runs what either key has signed", async () => {
    const stateDir = scratchDirectory();
    const { token } = await api.operator(org.id)(createEnrollmentToken, { body: {} });
    const { nodeId } = await join({ token, apiUrl: api.nodeUrl, stateDir, facts: someFacts });
    const known = () => readAgentFile(stateFiles(stateDir))?.verifiers.keys.map(({ kid }) => kid);
    const active = () => api.operator(org.id)(getNode, { params: { node_id: nodeId } });

    const first = await startTestAgent({ stateDir });
    await expect.poll(active).toMatchObject({ status: "active" });
    await first.stop();

    // Waits, signed with the present key, while the next one comes.
    const before = await ask(api, nodeId, "before");
    const { present, next } = await api.operator()(rotateTaskSigningKey, {});
    expect(known()).toEqual([present.kid]);

    const agent = await startTestAgent({ stateDir });
    await expect.poll(known).toEqual([present.kid, next.kid]);
    expect(await ended(before.id)).toMatchObject({ status: "completed", result: { echo: "before" } });
    expect(await signedWith(before.id)).toBe(present.kid);
    const between = await ask(api, nodeId, "between");
    expect(await ended(between.id)).toMatchObject({ status: "completed" });
    expect(await signedWith(between.id)).toBe(present.kid);

    // Two minutes later, as a replica sees it that reads the keys now.
    await superuser`UPDATE task_signing_keys SET sign_from = now() WHERE kid = ${next.kid}`;
    const replica = await startTestApi({ database: api.database });
    const after = await ask(replica, nodeId, "after");
    expect(await ended(after.id)).toMatchObject({ status: "completed", result: { echo: "after" } });
    expect(await signedWith(after.id)).toBe(next.kid);
    expect(agent.logged()).not.toContain("task_refused");
    await replica.stop();
  });

  it("TASK-03 a node that missed the rotation asks for the key it does not know, and runs the task", async () => {
    await superuser`UPDATE task_signing_keys SET sign_from = now() - interval '1 second'`;
    const stateDir = scratchDirectory();
    const { token } = await api.operator(org.id)(createEnrollmentToken, { body: {} });
    const { nodeId } = await join({ token, apiUrl: api.nodeUrl, stateDir, facts: someFacts });
    const agent = await startTestAgent({ stateDir });
    await expect
      .poll(() => api.operator(org.id)(getNode, { params: { node_id: nodeId } }))
      .toMatchObject({ status: "active" });
    // Between two heartbeats: the key is made and signs before the node hears of it.
    const { next } = await api.operator()(rotateTaskSigningKey, {});
    await superuser`UPDATE task_signing_keys SET sign_from = now() WHERE kid = ${next.kid}`;
    const replica = await startTestApi({ database: api.database });
    const task = await ask(replica, nodeId, "early");
    expect(await ended(task.id)).toMatchObject({ status: "completed" });
    expect(await signedWith(task.id)).toBe(next.kid);
    expect(agent.logged()).not.toContain("task_refused");
    await replica.stop();
  });

  /** As if a rotation were over: the keys before the newest have ended, and the newest signs. */
  async function rotateToEnd(): Promise<string> {
    await superuser`UPDATE task_signing_keys SET sign_from = now() - interval '1 second'`;
    const { next } = await api.operator()(rotateTaskSigningKey, {});
    await superuser`UPDATE task_signing_keys SET sign_from = now() WHERE kid = ${next.kid}`;
    await superuser`UPDATE task_signing_keys SET verify_until = now() WHERE kid <> ${next.kid}`;
    return next.kid;
  }

  it.each<[string, (file: AgentFile) => AgentFile]>([
    ["replays every set of keys that it missed", (file) => file],
    // As an agent left it that knew no versions and no signatures.
    ["goes on from the keys that it has, without a version", ({ trust: _, ...file }) => file],
  ])("TASK-03 a node that was offline across several rotations %s", async (_, leftBy) => {
    const stateDir = scratchDirectory();
    const files = stateFiles(stateDir);
    const { token } = await api.operator(org.id)(createEnrollmentToken, { body: {} });
    const { nodeId } = await join({ token, apiUrl: api.nodeUrl, stateDir, facts: someFacts });
    const known = () => readAgentFile(files)?.verifiers.keys.map(({ kid }) => kid) ?? [];
    const before = known();
    let newest = "";
    for (let rotation = 0; rotation < 3; rotation += 1) {
      newest = await rotateToEnd();
      // Publishes that the keys before it have ended, as every replica does within a minute.
      await (await startTestApi({ database: api.database })).stop();
    }
    const file = readAgentFile(files);
    if (!file) throw new Error("the agent's file is gone");
    writeAgentFile(files, leftBy(file));

    const replica = await startTestApi({ database: api.database });
    const env = { HOLDFAST_NODE_API_URL: replica.nodeUrl };
    const agent = await startTestAgent({ stateDir }, { env });
    await expect.poll(known).toEqual([newest]);
    expect(before).not.toContain(newest);
    const task = await ask(replica, nodeId, "offline");
    expect(await ended(task.id)).toMatchObject({ status: "completed" });
    expect(agent.logged()).not.toMatch(/task_refused|trust_update_refused/);
    await agent.stop();
    await replica.stop();
  });
});
