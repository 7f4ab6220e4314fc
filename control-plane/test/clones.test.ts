// Two machines with one identity, over two replicas of the api; and everything that is not a clone.

import { randomUUID } from "node:crypto";
import { explainNode } from "@holdfast/contracts/endpoints/drift";
import { changeNode, getNode, resolveClone } from "@holdfast/contracts/endpoints/nodes";
import { sendHeartbeat } from "@holdfast/contracts/node/endpoints";
import { BOOT_HEADER, INSTANCE_HEADER } from "@holdfast/contracts/node/limits";
import { beforeAll, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg } from "../../testkit/api/api.ts";
import { enrollTestNode, heartbeatOf, openClient, type TestNode, tokenOf } from "../../testkit/api/nodes.ts";
import { quiet } from "../../testkit/api/replica.ts";
import { openTestStream } from "../../testkit/api/streams.ts";
import { openRoles } from "../../testkit/database/database.ts";
import type { Sql } from "../src/database/connect.ts";
import { CLONE_REASON, reactToClone } from "../src/nodes/holders/quarantine.ts";
import {
  type Answered,
  benign,
  type Churn,
  cloned,
  newHost,
  newProcess,
  type Sent,
  type Server,
  type TestProcess,
} from "./support/holders.ts";

let api: TestApi;
let replica: TestApi;
let org: TestOrg;
let superuser: Sql;

beforeAll(async () => {
  api = await startTestApi();
  replica = await startTestApi({ database: api.database });
  ({ superuser } = openRoles(api.database));
  org = await createOrg(api, "clones");
});

const operator = () => api.operator(org.id);
const bodyOf = ({ after, clockOff, address }: Sent) =>
  heartbeatOf({
    sent_at: new Date(Date.now() + clockOff).toISOString(),
    ...(after === undefined ? {} : { after }),
    setup: {
      urls: { node_api: "https://nodes.example.com:18442", node_terminal: null },
      ...{ install_root: null, unit_sha256: null, env_sha256: null, source_address: address },
      ...{ provider: null, network_side: null, root_disk: null },
    },
  });

/** With requests of their own, as agents that poll. */
function serverOf(at: TestApi, node: TestNode): Server {
  const { ask } = openClient(at.nodeUrl, node.tls);
  return {
    async heartbeat(sent) {
      const headers = { [INSTANCE_HEADER]: sent.instanceId, [BOOT_HEADER]: sent.bootId };
      const { status, body } = await ask({
        method: "POST",
        path: node.path("heartbeat"),
        body: bodyOf(sent),
        headers,
      });
      expect(status).toBe(200);
      return answeredIn(body);
    },
    async disconnected() {
      await superuser`UPDATE node_presence SET disconnected_at = now(), disconnected_why = 'closed_by_agent'
        WHERE node_id = ${node.id}`;
    },
  };
}

const answeredIn = (body: Record<string, unknown>): Answered => ({
  number: body["number"] as number | undefined,
  again: body["again"] === true,
});

async function runningNode(): Promise<{ node: TestNode; server: Server; original: TestProcess }> {
  const node = await enrollTestNode(api, org.id);
  const server = serverOf(api, node);
  const original = newProcess(newHost());
  for (let turn = 0; turn < 3; turn += 1) await original.beat(server);
  return { node, server, original };
}

const audited = (node: TestNode, action: string) => superuser<
  { details: Record<string, unknown>; actor_type: string }[]
>`
  SELECT details, actor_type, correlation_id FROM audit_events WHERE target_id = ${node.id} AND action = ${action} ORDER BY id`;
const detailOf = (node: TestNode) => operator()(getNode, { params: { node_id: node.id } });
const isClassified = async (node: TestNode) => {
  const { causes } = await operator()(explainNode, { params: { node_id: node.id } });
  return causes.some(({ reason }) => reason === "cloned_identity_detected");
};

/** Of both replicas: what was done at the second attempt only. */
const failures = () =>
  [api, replica].flatMap((one) =>
    one
      .logged()
      .split("\n")
      .filter((line) => line.includes("could not")),
  );

describe("two machines with one identity", () => {
  it.for(Object.entries(cloned))("ID-10 are quarantined, and both learn why: %s", async ([, cloning]) => {
    const { node, server, original } = await runningNode();
    const elsewhere = serverOf(replica, node);
    const copy = await cloning(original, { server, replica: elsewhere, random: Math.random });
    for (let turn = 0; turn < 3; turn += 1) {
      await copy.beat(elsewhere);
      await original.beat(server);
    }
    const { status, status_reason, attention } = await detailOf(node);
    expect({ status, status_reason }).toEqual({ status: "quarantined", status_reason: CLONE_REASON });
    expect(attention[0]).toMatchObject({
      code: "cloned_identity_detected",
      severity: "P0",
      next_action: "reimage",
    });
    expect(await audited(node, "node.two_instances")).toMatchObject([{ actor_type: "system" }]);
    expect(await audited(node, "node.quarantine")).toMatchObject([
      { actor_type: "system", details: { from: "active", to: "quarantined", instances: [{}, {}] } },
    ]);
    for (const [at, process] of [
      [api, original],
      [replica, copy],
    ] as const) {
      const { ask } = openClient(at.nodeUrl, node.tls);
      const path = node.path("heartbeat");
      // The other replica learns it by a notification.
      const received = async () =>
        (await ask({ method: "POST", path, body: bodyOf(process.prepare()) })).body["node"];
      await expect.poll(received).toEqual({ status: "quarantined", reason: CLONE_REASON });
    }
  });

  it("ID-10 over streams at two replicas each is asked at once, whatever its ids", async () => {
    const { node, server, original } = await runningNode();
    const { instanceId, bootId } = original.prepare();
    const connect = async (at: TestApi, process: TestProcess) => {
      const stream = await openTestStream(at.nodeUrl, node.tls, { nodeId: node.id, instanceId, bootId });
      const over: Server = {
        ...server,
        heartbeat: async (sent) =>
          answeredIn((await stream.call(sendHeartbeat.name, bodyOf(sent)))["answer"] as Record<string, unknown>),
      };
      // As an agent does: one heartbeat at a time, and another one when it is asked.
      let last = process.beat(over);
      stream.socket.on("message", (data: Buffer) => {
        if ("beat" in JSON.parse(data.toString())) last = last.then(() => process.beat(over));
      });
      await last;
      return stream;
    };
    const copy = original.copy();
    await original.beat(server);
    const streams = [await connect(api, original), await connect(replica, copy)];
    await expect.poll(async () => (await detailOf(node)).status).toBe("quarantined");
    for (const stream of streams) {
      expect(await stream.next("standing")).toEqual({ standing: { status: "quarantined", reason: CLONE_REASON } });
    }
    await expect.poll(() => audited(node, "node.quarantine")).toHaveLength(1);
  });

  it("ID-10 stay classified while the quarantine lasts, and are quarantined again if both still run after it", async () => {
    const { node, server, original } = await runningNode();
    const copy = newProcess(newHost());
    const byTurns = async (turns: number) => {
      for (let turn = 0; turn < turns; turn += 1) {
        await copy.beat(server);
        await original.beat(server);
      }
    };
    await byTurns(3);
    await superuser`
      UPDATE node_observations SET observed_at = observed_at - interval '3 hours', seen_at = seen_at - interval '3 hours'
      WHERE node_id = ${node.id} AND kind = 'instances'`;
    expect(await isClassified(node)).toBe(true);
    await operator()(changeNode, { params: { node_id: node.id }, body: { change: "reactivate" } });
    expect(await isClassified(node)).toBe(false);
    await byTurns(3);
    expect(await isClassified(node)).toBe(true);
    expect(await audited(node, "node.quarantine")).toHaveLength(2);
    expect(failures()).toEqual([]);
  });

  it("ID-10 are reported only, where the policy is off", async () => {
    const lenient = await startTestApi({
      database: api.database,
      env: { HOLDFAST_NODE_QUARANTINE_CLONES: "off" },
    });
    const node = await enrollTestNode(api, org.id);
    const server = serverOf(lenient, node);
    const [one, two] = [newProcess(newHost()), newProcess(newHost())];
    for (let turn = 0; turn < 4; turn += 1) for (const process of [one, two]) await process.beat(server);
    expect(await detailOf(node)).toMatchObject({ status: "active" });
    expect(await isClassified(node)).toBe(true);
    expect(await audited(node, "node.two_instances")).toHaveLength(1);
    expect(await audited(node, "node.quarantine")).toEqual([]);
  });
});

describe("the decision which one is kept", () => {
  async function clonedNode() {
    const { node, server, original } = await runningNode();
    const host = { ...newHost(), address: "10.9.9.9" };
    const copy = newProcess(host);
    for (let turn = 0; turn < 3; turn += 1) for (const one of [copy, original]) await one.beat(server);
    return { node, server, original, copy };
  }
  const explanationOf = (node: TestNode) => operator()(explainNode, { params: { node_id: node.id } });

  it("ID-10 shows both, which one is probably the original, and why; before it there is nothing to decide", async () => {
    const alone = await runningNode();
    expect((await explanationOf(alone.node)).clone).toBeNull();
    const { node, original, copy } = await clonedNode();
    const { clone } = await explanationOf(node);
    expect(clone?.instances).toMatchObject([
      { instance_id: original.prepare().instanceId, address: "10.0.0.1", hostname: "machine-one" },
      { instance_id: copy.prepare().instanceId, address: "10.9.9.9" },
    ]);
    expect(clone?.recommended).toBe(clone?.instances[0]?.holder);
    expect(clone?.why).toEqual([expect.stringContaining("was known before the other one appeared")]);
    const params = { node_id: alone.node.id };
    await expect(operator()(resolveClone, { params, body: { keep: 1 } })).rejects.toMatchObject({
      envelope: { code: "node_change_refused" },
    });
  });

  it("ID-10 revokes what both have, gives the kept one a new key, and leaves the end of the quarantine to an operator", async () => {
    const { node } = await clonedNode();
    const params = { node_id: node.id };
    const unused = await tokenOf(api, org.id, node.id);
    const { clone } = await explanationOf(node);
    const keep = clone?.recommended ?? 0;
    await expect(operator()(resolveClone, { params, body: { keep: 999_999 } })).rejects.toMatchObject({
      envelope: { code: "invalid_request" },
    });
    const resolved = await operator()(resolveClone, { params, body: { keep } });
    expect(resolved).toMatchObject({ kind: "pairing", node_id: node.id });
    for (const at of [api, replica]) {
      const { ask } = openClient(at.nodeUrl, node.tls);
      const path = node.path("heartbeat");
      await expect
        .poll(async () => (await ask({ method: "POST", path, body: heartbeatOf() })).body["code"])
        .toBe("identity_revoked");
    }
    await expect(enrollTestNode(api, org.id, { token: unused })).rejects.toMatchObject({
      envelope: { code: "identity_revoked" },
    });
    expect((await explanationOf(node)).causes[0]).toMatchObject({
      ...{ reason: "identity_revoked_or_fenced", next_action: "re_enroll" },
    });
    const kept = await enrollTestNode(api, org.id, { token: resolved.token });
    expect(kept.id).toBe(node.id);
    const server = serverOf(replica, kept);
    await newProcess(newHost()).beat(server);
    expect((await detailOf(kept)).status).toBe("quarantined");
    await operator()(changeNode, { params, body: { change: "reactivate" } });
    expect((await detailOf(kept)).status).toBe("active");
    expect((await explanationOf(kept)).clone).toBeNull();
    const events = await audited(node, "node.resolve_clone");
    expect(events.at(-1)?.details).toMatchObject({ kept: { holder: keep }, to_be_reimaged: [{}] });
  });
});

describe("while it is decided", () => {
  it("ID-10 what both prove until then is decided, too", async () => {
    const { node, server, original } = await runningNode();
    const copy = newProcess({ ...newHost(), address: "10.9.9.9" });
    for (const one of [copy, original, copy, original, copy, original]) await one.beat(server);
    const params = { node_id: node.id };
    const { clone } = await operator()(explainNode, { params });
    const resolving = await superuser.begin(async (tx) => {
      await tx`SELECT FROM node_verdicts WHERE node_id = ${node.id} FOR UPDATE`;
      const answer = operator()(resolveClone, { params, body: { keep: clone?.recommended ?? 0 } });
      const waiting = () => superuser`SELECT FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'`;
      await expect.poll(async () => (await waiting()).length).toBeGreaterThan(0);
      await tx`
        UPDATE node_observations SET observed_at = clock_timestamp(), seen_at = clock_timestamp()
        WHERE node_id = ${node.id} AND kind = 'instances' AND replaced_at IS NULL`;
      return { answer };
    });
    await resolving.answer;
    const { causes, clone: left } = await operator()(explainNode, { params });
    expect(left).toBeNull();
    expect(causes.map(({ reason }) => reason)).not.toContain("cloned_identity_detected");
  });

  it("ID-10 a proof by a certificate that was revoked meanwhile changes nothing", async () => {
    const { node, server, original } = await runningNode();
    const copy = newProcess({ ...newHost(), address: "10.9.9.9" });
    for (const one of [copy, original, copy, original, copy, original]) await one.beat(server);
    const params = { node_id: node.id };
    const { clone } = await operator()(explainNode, { params });
    const { token } = await operator()(resolveClone, { params, body: { keep: clone?.recommended ?? 0 } });
    await enrollTestNode(api, org.id, { token });
    await operator()(changeNode, { params, body: { change: "reactivate" } });
    const [one, other] = (clone?.instances ?? []).map(
      ({ holder, instance_id, boot_id, certificate_serial, hostname, address }) => ({
        ...{ id: holder, instanceId: instance_id, bootId: boot_id, serial: certificate_serial, hostname, address },
        ...{ startedAt: 0, firstAt: 0, lastAt: Date.now() + 60_000 },
      }),
    );
    if (!one || !other) throw new Error("there are two");
    const nodes = { quarantineClones: true, directory: { changed: () => undefined } };
    const deps = {
      system: openRoles(api.database).system,
      signals: { publish: () => undefined },
      log: quiet,
      nodes,
    };
    await reactToClone(deps as never, { nodeId: node.id, orgId: org.id, holders: [one, other] } as never);
    expect((await detailOf(node)).status).toBe("active");
    expect(await isClassified(node)).toBe(false);
  });
});

describe("after the decision", () => {
  it.for([0, 1, 2, 3])(
    "ID-10 heartbeats from before it prove nothing when the kept machine restarts: %i more of them",
    async (more) => {
      const { node, server, original } = await runningNode();
      const copy = newProcess({ ...newHost(), address: "10.9.9.9" });
      const turns = [copy, original, copy, original, copy, original];
      for (const one of [...turns, ...turns.slice(0, more)]) await one.beat(server);
      const params = { node_id: node.id };
      const { clone } = await operator()(explainNode, { params });
      const { token } = await operator()(resolveClone, { params, body: { keep: clone?.recommended ?? 0 } });
      const again = serverOf(api, await enrollTestNode(api, org.id, { token }));
      await operator()(changeNode, { params, body: { change: "reactivate" } });
      const restarted = newProcess(newHost());
      for (const one of [original, original, restarted, restarted, restarted]) await one.beat(again);
      expect((await detailOf(node)).status).toBe("active");
      expect(await isClassified(node)).toBe(false);
      // Another copy, of the machine that was kept, is found as the first one was.
      const another = newProcess({ ...newHost(), address: "10.9.9.10" });
      for (const one of [another, restarted, another, restarted, another, restarted]) await one.beat(again);
      expect((await detailOf(node)).status).toBe("quarantined");
    },
  );
});

describe("one machine", () => {
  const NODES = 20;
  const ROUNDS = 10;

  /** All kinds at once: the server takes the heartbeats of many nodes together. */
  const churned = new Map<string, TestNode[]>();
  beforeAll(async () => {
    const rounds = async (churn: Churn) => {
      const { node, server, original } = await runningNode();
      const round = { server, replica: serverOf(replica, node), random: Math.random };
      let process = original;
      for (let turn = 0; turn < ROUNDS; turn += 1) process = await churn(round, process);
      return node;
    };
    const all = Object.entries(benign).map(async ([name, churn]) => {
      churned.set(name, await Promise.all(Array.from({ length: NODES }, () => rounds(churn))));
    });
    await Promise.all(all);
    // Seconds on a free machine.
  }, 900_000);

  it.for(Object.keys(benign))("ID-10 is never quarantined: %s, 200 rounds", async (name) => {
    const nodes = churned.get(name) ?? [];
    expect(nodes).toHaveLength(NODES);
    for (const node of nodes) {
      expect(await audited(node, "node.two_instances")).toEqual([]);
      expect(await detailOf(node)).toMatchObject({ status: "active" });
    }
  });

  it("ID-10 costs no review of its heartbeats while one agent sends them", async () => {
    const { node, server, original } = await runningNode();
    for (let turn = 0; turn < 5; turn += 1) await original.beat(server);
    expect(await superuser`SELECT FROM node_holders WHERE node_id = ${node.id}`).toHaveLength(0);
    await newProcess({ ...original.host, bootId: randomUUID() }).beat(server);
    expect(await superuser`SELECT FROM node_holders WHERE node_id = ${node.id}`).toHaveLength(1);
  });
});
