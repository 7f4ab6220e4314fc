// A simulated fleet against the real api and database: what decides for one agent decides for each of many.

import { createEnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import { changeNode, listNodes } from "@holdfast/contracts/endpoints/nodes";
import { rotateTaskSigningKey } from "@holdfast/contracts/endpoints/task-signing-keys";
import { createTask } from "@holdfast/contracts/endpoints/tasks";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi } from "../../testkit/api/api.ts";
import { endedTask } from "../../testkit/api/ended-task.ts";
import { openRoles } from "../../testkit/database/database.ts";
import type { SimAgent } from "../src/sim/agent.ts";
import { characterOf, SIMULATED, simName } from "../src/sim/character.ts";
import { createFleet, type Fleet } from "../src/sim/fleet.ts";
import { createSimJoiner, type SimJoiner } from "../src/sim/join.ts";

const AGENTS = 40;
let api: TestApi;
let client: ReturnType<TestApi["operator"]>;
let org: string;
let joiner: SimJoiner;
const fleet: Fleet = createFleet();
const agents: SimAgent[] = [];

const joinOne = async (number: number, nodeId?: string) => {
  const body = nodeId === undefined ? { node_name: simName(number) } : { node_id: nodeId };
  const { token } = await client(createEnrollmentToken, { body });
  const character = characterOf(number, { seed: 1, agentVersion: "0.1.0" });
  const joined = await joiner.join({ token, character, ...(nodeId === undefined ? {} : { nodeId }) });
  return { joined, character };
};
const finished = (taskId: string) => endedTask(client, taskId);
/** Who has knocked in vain for a while knocks less often. */
const allConnected = () => expect.poll(() => fleet.status().connected).toBe(AGENTS);

beforeAll(async () => {
  api = await startTestApi();
  org = (await createOrg(api, "simulated")).id;
  client = api.operator(org);
  joiner = createSimJoiner({ apiUrl: api.nodeUrl, atOnce: 8 });
  const numbers = Array.from({ length: AGENTS }, (_, index) => index + 1);
  for (const { joined, character } of await Promise.all(numbers.map((number) => joinOne(number)))) {
    agents.push(fleet.add(joined, character));
  }
});
afterAll(async () => {
  joiner.close();
  await fleet.stop();
});

describe("a simulated fleet", () => {
  it("is many nodes of their own, and none can be mistaken for a machine", async () => {
    await allConnected();
    const { items } = await client(listNodes, { query: { limit: 200 } });
    expect(items).toHaveLength(AGENTS);
    for (const node of items) {
      expect(node).toMatchObject({ status: "active", connection: "online", os: "simulated 1" });
      expect(node.name).toMatch(/^sim-\d{5}$/);
      expect(node.capabilities).toEqual([SIMULATED]);
    }
  });

  it("TASK-09 runs a task on every node at once; what needs a host is refused", async () => {
    const tasks = await Promise.all(
      agents.map(({ nodeId }, index) =>
        client(createTask, {
          params: { node_id: nodeId },
          body: { type: "node.noop", params: { echo: String(index), hold_ms: index % 4 === 0 ? 200 : 0 } },
        }),
      ),
    );
    const ends = await Promise.all(tasks.map(({ id }) => finished(id)));
    expect(ends.map(({ result }) => result)).toEqual(ends.map((_, index) => ({ echo: String(index) })));

    const params = { node_id: agents[0]?.nodeId ?? "" };
    const probed = await client(createTask, { params, body: { type: "diag.health_probe" } });
    expect(await finished(probed.id)).toMatchObject({ status: "completed", result: { kernel: SIMULATED } });
    const foreign = await client(createTask, { params, body: { type: "diag.network_probe" } });
    expect(await finished(foreign.id)).toMatchObject({ status: "failed", failure: { code: "task_type_unknown" } });
  });

  it("TASK-03 follows a rotation of the key that signs tasks", async () => {
    const { superuser } = openRoles(api.database);
    const { next } = await api.operator()(rotateTaskSigningKey, {});
    await superuser`UPDATE task_signing_keys SET sign_from = now() WHERE kid = ${next.kid}`;
    // It signs with the new key, which the nodes meet before their next heartbeat.
    const replica = await startTestApi({ database: api.database });
    const params = { node_id: agents[1]?.nodeId ?? "" };
    const task = await replica.operator(org)(createTask, { params, body: { type: "node.noop" } });
    expect(await finished(task.id)).toMatchObject({ status: "completed" });
    await replica.stop();
  });

  it("AGENT-02 leaves the network and comes back, and knows a revocation for what it is", async () => {
    const [first, second] = agents;
    if (!first || !second) throw new Error("there is no fleet");
    first.goAway();
    expect(fleet.status()).toMatchObject({ away: 1 });
    const params = { node_id: first.nodeId };
    const { id } = await client(createTask, { params, body: { type: "node.noop", params: { echo: "later" } } });
    first.comeBack();
    expect(await finished(id)).toMatchObject({ status: "completed", result: { echo: "later" } });

    await client(changeNode, { params: { node_id: second.nodeId }, body: { change: "revoke" } });
    await expect.poll(() => fleet.status().problems).toEqual({ identity_revoked: 1 });
    await second.stop();
    // As a second run of the command does: the same node, with another key.
    const { joined, character } = await joinOne(2, second.nodeId);
    await client(changeNode, { params: { node_id: second.nodeId }, body: { change: "reactivate" } });
    fleet.add(joined, character);
    await allConnected();
    expect((await client(listNodes, { query: { limit: 200 } })).items).toHaveLength(AGENTS);
  });

  it("AGENT-02 finds the server again after it was gone, and goes on with its work", async () => {
    const { database, nodeUrl } = api;
    const { port } = new URL(nodeUrl);
    await api.stop();
    await expect.poll(() => fleet.status().connected).toBe(0);
    api = await startTestApi({ database, env: { HOLDFAST_NODE_API_PORT: port } });
    client = api.operator(org);
    await allConnected();
    const params = { node_id: agents[0]?.nodeId ?? "" };
    const { id } = await client(createTask, { params, body: { type: "node.noop" } });
    expect(await finished(id)).toMatchObject({ status: "completed" });
  });
});
