// What heartbeats say about the agent itself becomes evidence, causes, and the record of the node.

import { addNodeEvidence, explainNode } from "@holdfast/contracts/endpoints/drift";
import { getNode, updateNode } from "@holdfast/contracts/endpoints/nodes";
import { BOOT_HEADER, INSTANCE_HEADER } from "@holdfast/contracts/node/limits";
import type { AgentSetup } from "@holdfast/contracts/node/protocol";
import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, describe, expect, it } from "vitest";
import { someSetup } from "../../testkit/agent/facts.ts";
import { createOrg, startTestApi, type TestApi, type TestOrg } from "../../testkit/api/api.ts";
import { classifyWhatIsDue } from "../../testkit/api/evidence.ts";
import { enrollTestNode, heartbeatOf, hostFacts, type TestNode } from "../../testkit/api/nodes.ts";
import { openRoles } from "../../testkit/database/database.ts";
import type { Sql } from "../src/database/connect.ts";
import { recordObservations } from "../src/drift/evidence/write.ts";
import { compareAllProfiles } from "../src/drift/observers/compare-all-profiles.ts";
import { observeSetups } from "../src/drift/observers/setup.ts";
import { defaultPolicy as policy } from "../src/drift/policy.ts";
import { findUnnoticed } from "../src/drift/verdicts/find-unnoticed.ts";
import { createNetworkRecord } from "../src/nodes/directory/network-facts.ts";
import { createPublished } from "../src/profiles/published.ts";

let api: TestApi;
let org: TestOrg;
let system: Sql;
let superuser: Sql;
/** As published by the api of this test. */
let urls: AgentSetup["urls"];

beforeAll(async () => {
  api = await startTestApi();
  ({ system, superuser } = openRoles(api.database));
  org = await createOrg(api, "setups");
  const [row] = await superuser<{ url: string; terminal: string | null }[]>`
    SELECT content#>>'{endpoints,node_api}' AS url, content#>>'{endpoints,node_terminal}' AS terminal
    FROM environment_profiles ORDER BY version DESC LIMIT 1`;
  urls = { node_api: new URL(row?.url ?? "").origin, node_terminal: row?.terminal ?? null };
});

type Sent = { setup?: Partial<AgentSetup>; version?: string; headers?: Record<string, string> };

const heartbeat = (node: TestNode, { setup = {}, version = "0.1.0", headers = {} }: Sent = {}) =>
  node.client.ask({
    ...{ method: "POST", path: node.path("heartbeat"), headers },
    body: heartbeatOf({
      setup: { ...someSetup, urls, ...setup },
      facts: { ...hostFacts, agent_version: version },
    }),
  });

async function reasonsOf({ id }: TestNode): Promise<string[]> {
  await findUnnoticed(system, policy);
  await classifyWhatIsDue(system, policy);
  const [row] = await superuser<{ causes: { reason: string }[] }[]>`
    SELECT causes FROM node_verdicts WHERE node_id = ${id}`;
  return row?.causes.map(({ reason }) => reason) ?? [];
}

/** Oldest first. */
async function valuesOf({ id }: TestNode, kind: string, key = ""): Promise<string[]> {
  const rows = await superuser<{ value: string }[]>`
    SELECT value FROM node_observations WHERE node_id = ${id} AND kind = ${kind} AND key = ${key} ORDER BY observed_at`;
  return rows.map(({ value }) => value);
}

const detailOf = ({ id }: TestNode) => api.operator(org.id)(getNode, { params: { node_id: id } });
const explain = ({ id }: TestNode) => api.operator(org.id)(explainNode, { params: { node_id: id } });
const partOf = async (node: TestNode, wanted: string) =>
  (await explain(node)).parts.find(({ part }) => part === wanted);

describe("the addresses that a node uses", () => {
  it("DRIFT-01 DRIFT-02 are in order while they are those of the profile, and a cause when they are not", async () => {
    const node = await enrollTestNode(api, org.id);
    await heartbeat(node);
    await expect.poll(() => valuesOf(node, "profile", "api")).toEqual(["matches"]);
    expect(await reasonsOf(node)).toEqual([]);
    expect(await partOf(node, "endpoint_identity")).toMatchObject({
      state: "in_order",
      observer: "control_plane",
    });

    await heartbeat(node, { setup: { urls: { ...urls, node_api: "https://old.example.com" } } });
    await expect.poll(() => reasonsOf(node)).toEqual(["endpoint_profile_drift"]);
    const { causes, evidence } = await explain(node);
    expect(causes).toMatchObject([{ confidence: "high", next_action: "repair_endpoint_profile", severity: "P1" }]);
    expect(evidence.find(({ kind, key }) => kind === "profile" && key === "api")).toMatchObject({
      detail: { expected: urls.node_api, reported: "https://old.example.com" },
    });
    expect(await partOf(node, "endpoint_identity")).toMatchObject({ state: "drifted" });

    await heartbeat(node);
    await expect.poll(() => reasonsOf(node)).toEqual(["recovery_unverified"]);
    expect(await valuesOf(node, "profile", "api")).toEqual(["matches", "differs", "matches"]);
  });

  it("DRIFT-01 are as old as the last heartbeat: unknown of a node that does not report", async () => {
    const node = await enrollTestNode(api, org.id);
    await heartbeat(node);
    await expect.poll(() => valuesOf(node, "profile", "api")).toEqual(["matches"]);
    await superuser`UPDATE node_presence SET heartbeat_at = now() - interval '10 minutes' WHERE node_id = ${node.id}`;
    expect(await partOf(node, "endpoint_identity")).toMatchObject({ state: "unknown" });
  });

  it("DRIFT-01 an unchanged report is not written again, also by a process that knows nothing of the node", async () => {
    const node = await enrollTestNode(api, org.id);
    const instanceId = uuidv7();
    await heartbeat(node, { headers: { [INSTANCE_HEADER]: instanceId } });
    await expect.poll(() => valuesOf(node, "disk")).toEqual(["measured"]);
    const stored = Promise.withResolvers<string[]>();
    const observe = observeSetups({
      recorder: {
        observe: (_nodeId, observations) => {
          recordObservations(system, observations).then(stored.resolve, stored.reject);
        },
      },
      ...{ acceptedProfiles: createPublished(system), network: createNetworkRecord(system) },
      ...{ requiredVersion: "0.1.0", policy, log: { warn: () => undefined } },
    });
    observe({
      ...{ nodeId: node.id, at: new Date(), instanceId, bootId: "boot-1" },
      heartbeat: { facts: hostFacts, setup: { ...someSetup, urls } },
    });
    expect(await stored.promise).toEqual([]);
  });
});

describe("a profile that changes", () => {
  const publish = async (node_api: string, age: string) => {
    const [row] = await superuser<{ version: number }[]>`
      INSERT INTO environment_profiles (name, version, content, created_at)
      SELECT name, version + 1,
        jsonb_set(content::jsonb, '{endpoints,node_api}', to_jsonb(${node_api}::text))::json, now() - ${age}::interval
      FROM environment_profiles ORDER BY version DESC LIMIT 1 RETURNING version`;
    return row?.version;
  };

  it("DRIFT-01 leaves nodes time to follow, then finds those that did not, and forgives when it is taken back", async () => {
    const [follows, stays] = [await enrollTestNode(api, org.id), await enrollTestNode(api, org.id)];
    for (const node of [follows, stays]) await heartbeat(node);
    for (const node of [follows, stays]) {
      await expect.poll(() => valuesOf(node, "profile", "api")).toEqual(["matches"]);
    }
    const moved = "https://moved.example.com";
    const version = await publish(moved, "1 second");
    await compareAllProfiles(system);
    expect(await reasonsOf(stays), "a moment after").toEqual([]);
    expect(await valuesOf(stays, "profile", "api")).toEqual(["matches"]);

    await superuser`
      UPDATE node_presence SET heartbeat = jsonb_set(heartbeat::jsonb, '{setup,urls,node_api}', to_jsonb(${moved}::text))::json
      WHERE node_id = ${follows.id}`;
    await superuser`
      UPDATE environment_profiles SET created_at = now() - interval '3 minutes' WHERE version = ${version ?? 0}`;
    expect((await compareAllProfiles(system)).sort()).toEqual(
      expect.arrayContaining([follows.id, stays.id].sort()),
    );
    expect(await valuesOf(stays, "profile", "api")).toEqual(["matches", "differs"]);
    expect(await valuesOf(follows, "profile", "api")).toEqual(["matches"]);
    expect(await reasonsOf(stays)).toEqual(["endpoint_profile_drift"]);
    expect(await reasonsOf(follows)).toEqual([]);
    expect(await compareAllProfiles(system), "all are compared").toEqual([]);

    await publish(urls.node_api, "1 second");
    expect(await compareAllProfiles(system), "at once").toContain(stays.id);
    expect(await reasonsOf(stays)).toEqual(["recovery_unverified"]);
  });

  it("DRIFT-07 that they matched does not contradict what a silent host says about itself", async () => {
    const node = await enrollTestNode(api, org.id);
    await heartbeat(node);
    await expect.poll(() => valuesOf(node, "profile", "api")).toEqual(["matches"]);
    await superuser`UPDATE node_presence SET heartbeat_at = now() - interval '10 minutes' WHERE node_id = ${node.id}`;
    const record = {
      ...{ at: new Date(Date.now() - 1000).toISOString(), reason: "endpoint_profile_drift" },
      ...{ detail: "in use is https://old.example.com", correlation_id: null },
    };
    await api.operator(org.id)(addNodeEvidence, { params: { node_id: node.id }, body: { records: [record] } });
    expect(await reasonsOf(node)).toEqual(["endpoint_profile_drift"]);
  });

  it("DRIFT-02 a node that was silent before is a guess, not a certainty", async () => {
    const node = await enrollTestNode(api, org.id);
    await heartbeat(node, { setup: { urls: { ...urls, node_api: "https://old.example.com" } } });
    await expect.poll(() => reasonsOf(node)).toEqual(["endpoint_profile_drift"]);
    await superuser`UPDATE node_presence SET heartbeat_at = now() - interval '10 minutes' WHERE node_id = ${node.id}`;
    await findUnnoticed(system, policy);
    expect(await reasonsOf(node)).toEqual(["endpoint_profile_drift"]);
    expect((await explain(node)).causes).toMatchObject([
      { confidence: "medium", symptoms: [{ reason: "agent_down" }] },
    ]);
  });
});

describe("an agent", () => {
  it("DRIFT-15 that is older than required is reported, until it is upgraded", async () => {
    const node = await enrollTestNode(api, org.id);
    await heartbeat(node, { version: "0.0.9" });
    await expect.poll(() => reasonsOf(node)).toEqual(["agent_version_drift"]);
    const { causes } = await explain(node);
    expect(causes).toMatchObject([{ severity: "P2", next_action: "update_agent", user_state: "normal" }]);
    await heartbeat(node, { version: "0.1.0" });
    await expect.poll(() => reasonsOf(node)).toEqual([]);
  });

  it("DRIFT-01 that restarts, and a host that reboots, are in the history, and no cause", async () => {
    const node = await enrollTestNode(api, org.id);
    const [first, second] = [uuidv7(), uuidv7()];
    await heartbeat(node, { headers: { [INSTANCE_HEADER]: first } });
    await expect.poll(() => valuesOf(node, "started", "agent")).toEqual([first]);
    await heartbeat(node, { headers: { [INSTANCE_HEADER]: second, [BOOT_HEADER]: "boot-2" } });
    await expect.poll(() => valuesOf(node, "started", "agent")).toEqual([first, second]);
    expect(await valuesOf(node, "started", "host")).toEqual(["boot-1", "boot-2"]);
    expect(await reasonsOf(node)).toEqual([]);
  });

  it("DRIFT-13 whose root file system fills up is reported by how full it is", async () => {
    const node = await enrollTestNode(api, org.id);
    const disk = (used_percent: number) =>
      heartbeat(node, { setup: { root_disk: { used_percent, pressure_percent: 90 } } });
    await disk(89);
    await expect.poll(() => valuesOf(node, "disk")).toEqual(["measured"]);
    expect(await reasonsOf(node)).toEqual([]);
    await disk(91);
    await expect.poll(() => reasonsOf(node)).toEqual(["node_observability_disk_pressure"]);
    await disk(98);
    await expect.poll(() => reasonsOf(node)).toEqual(["disk_full"]);
    await disk(50);
    await expect.poll(() => reasonsOf(node)).toEqual([]);
  });

  it("AGENT-06 of an older version, which reports none of this, is accepted, and nothing is made up", async () => {
    const node = await enrollTestNode(api, org.id);
    const answer = await node.client.ask({ method: "POST", path: node.path("heartbeat"), body: heartbeatOf() });
    expect(answer.status).toBe(200);
    await expect.poll(() => valuesOf(node, "agent_build")).toEqual(["supported"]);
    expect(await partOf(node, "endpoint_identity")).toMatchObject({ state: "unknown", observer: null });
    expect(await detailOf(node)).toMatchObject({ setup: null, address: null, provider: null, network_side: null });
    expect(await reasonsOf(node)).toEqual([]);
  });

  it("DRIFT-01 that is rolled back to a version without it: what the newer one reported is no longer known", async () => {
    const node = await enrollTestNode(api, org.id);
    const root_disk = { used_percent: 99, pressure_percent: 90 };
    await heartbeat(node, { setup: { root_disk, urls: { ...urls, node_api: "https://old.example.com" } } });
    await expect.poll(() => reasonsOf(node)).toEqual(["endpoint_profile_drift", "disk_full"]);
    await node.client.ask({ method: "POST", path: node.path("heartbeat"), body: heartbeatOf() });
    expect(await explain(node)).toMatchObject({ causes: [{ reason: "recovery_unverified" }] });
    expect(await partOf(node, "endpoint_identity")).toMatchObject({ state: "unknown", observer: null });
  });

  it.for<[string, Partial<Record<keyof AgentSetup, unknown>>]>([
    ["urls.node_api", { urls: { node_api: "not an address", node_terminal: null } }],
    ["urls.node_api", { urls: { node_api: "https://user:secret@a.example", node_terminal: null } }],
    ["urls.node_api", { urls: { node_api: "https://a.example/?token=secret", node_terminal: null } }],
    [
      "urls.node_terminal",
      { urls: { node_api: "https://a.example", node_terminal: `https://${"a".repeat(400)}` } },
    ],
    ["install_root", { install_root: "x".repeat(201) }],
    ["env_sha256", { env_sha256: "SECRET=1" }],
    ["source_address", { source_address: "elsewhere" }],
    ["provider", { provider: "a b" }],
    ["root_disk.used_percent", { root_disk: { used_percent: 101, pressure_percent: 90 } }],
  ])("AGENT-06 with an invalid %s is refused, and told why", async ([field, setup]) => {
    const node = await enrollTestNode(api, org.id);
    const { status, body } = await heartbeat(node, { setup: setup as Partial<AgentSetup> });
    expect({ status, code: body["code"] }).toEqual({ status: 400, code: "invalid_request" });
    expect(JSON.stringify(body["details"])).toContain(`setup.${field}`);
    expect(JSON.stringify(body)).not.toContain("secret");
  });

  it("AGENT-06 that sends a megabyte is refused", async () => {
    const node = await enrollTestNode(api, org.id);
    const { status } = await heartbeat(node, { setup: { install_root: "x".repeat(1024 * 1024) } });
    expect(status).toBeOneOf([400, 413]);
  });
});

describe("where a node is", () => {
  it("DRIFT-15 is on record as last reported; a change is a cause until the next heartbeat confirms it", async () => {
    const node = await enrollTestNode(api, org.id);
    await heartbeat(node, { setup: { source_address: "10.0.0.1" } });
    await expect.poll(() => valuesOf(node, "address")).toEqual(["same"]);
    expect(await detailOf(node)).toMatchObject({ address: "10.0.0.1" });

    await heartbeat(node, { setup: { source_address: "10.7.0.1" } });
    await expect.poll(() => reasonsOf(node)).toEqual(["network_facts_drift"]);
    expect((await explain(node)).causes).toMatchObject([
      { severity: "P2", user_state: "normal", next_action: "wait", owner_id: "provider_network" },
    ]);
    expect(await detailOf(node), "repaired by itself").toMatchObject({ address: "10.7.0.1" });

    await heartbeat(node, { setup: { source_address: "10.7.0.1" } });
    await expect.poll(() => reasonsOf(node)).toEqual([]);
    expect(await valuesOf(node, "address")).toEqual(["same", "changed", "same"]);
    await heartbeat(node, { setup: { source_address: null } });
    expect(await detailOf(node)).toMatchObject({ address: "10.7.0.1" });
  });

  it("DRIFT-14 has the provider and network side that the agent reports, unless an operator set others", async () => {
    const node = await enrollTestNode(api, org.id);
    const params = { node_id: node.id };
    const update = (body: { provider?: string | null; network_side?: string | null }) =>
      api.operator(org.id)(updateNode, { params, body });
    const place = async () => {
      const { provider, network_side } = await detailOf(node);
      return { provider, network_side };
    };
    await heartbeat(node, { setup: { provider: "acme", network_side: "behind-nat" } });
    await expect.poll(place).toEqual({ provider: "acme", network_side: "behind-nat" });
    expect(await update({ provider: "own-metal" })).toMatchObject({
      provider: "own-metal",
      network_side: "behind-nat",
    });
    await heartbeat(node, { setup: { provider: "acme-2", network_side: "same-lan" } });
    await expect.poll(place).toEqual({ provider: "own-metal", network_side: "same-lan" });
    expect(await update({ provider: null }), "as reported").toMatchObject({ provider: "acme-2" });
    await heartbeat(node, { setup: { provider: null, network_side: "same-lan" } });
    await expect.poll(place).toEqual({ provider: null, network_side: "same-lan" });
    await expect(update({ provider: "two words" })).rejects.toMatchObject({
      envelope: { code: "invalid_request" },
    });
    await expect(update({})).rejects.toMatchObject({ envelope: { code: "invalid_request" } });
  });
});
