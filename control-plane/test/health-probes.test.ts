// The routine of asking nodes how their hosts are: whom, when, how often, and what becomes of the answers.

import { listAudit } from "@holdfast/contracts/endpoints/audit";
import { getNode } from "@holdfast/contracts/endpoints/nodes";
import { createTask, getTask, listTasks } from "@holdfast/contracts/endpoints/tasks";
import type { HostHealth } from "@holdfast/contracts/node/host-health";
import { readSettings } from "@holdfast/kit/settings";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg } from "../../testkit/api/api.ts";
import { heartbeatOf } from "../../testkit/api/nodes.ts";
import {
  answerTasks,
  insertNode,
  openReplica,
  quiet,
  type Replica,
  type TestNode,
} from "../../testkit/api/replica.ts";
import { openRoles } from "../../testkit/database/database.ts";
import { apiSettings } from "../src/api/settings.ts";
import type { Sql } from "../src/database/connect.ts";
import { gatherChanges } from "../src/live/changes.ts";
import type { ChangedRow } from "../src/live/topic.ts";
import { probeHealth } from "../src/nodes/presence/probe-health.ts";
import { taskTopic } from "../src/tasks/live.ts";

const TYPE = "diag.health_probe";
const INTERVAL = 900;
const rules = { intervalSeconds: INTERVAL, staleAfterSeconds: 120, log: quiet };

let api: TestApi;
let org: TestOrg;
let system: Sql;
let superuser: Sql;
let replica: Replica;
let clock: number;

beforeAll(async () => {
  api = await startTestApi();
  ({ system, superuser } = openRoles(api.database));
  org = await createOrg(api, "probed");
  replica = await openReplica(api.database, system);
});
beforeEach(async () => {
  clock = Date.now();
  await removeNodes();
});

const DEADLOCK = "40P01";

/** It locks more tables than any statement of the api, which runs on meanwhile, and may be the one to give way. */
async function removeNodes(): Promise<void> {
  for (;;) {
    try {
      // In this order: what the last probe told may still be on its way in, and reads the nodes last.
      await superuser`TRUNCATE node_health, tasks, nodes CASCADE`;
      return;
    } catch (error) {
      if ((error as { code?: string }).code !== DEADLOCK) throw error;
    }
  }
}

const later = (seconds: number) => {
  clock += seconds * 1000;
};
const hearFromNodes = () =>
  superuser`UPDATE node_presence SET heartbeat_at = ${new Date(clock)} WHERE boot_id = 'online'`;
const probe = (by: Replica) => probeHealth(system, by.engine, { ...rules, now: new Date(clock) });
const turn = async () => {
  await hearFromNodes();
  return probe(replica);
};

let names = 0;
/** Active, and heard of for as long as the test goes on. */
async function newNode(): Promise<TestNode> {
  names += 1;
  const node = await insertNode(superuser, org.id, { name: `probed-${names}` });
  await superuser`
    UPDATE node_presence SET boot_id = 'online', heartbeat = ${superuser.json(heartbeatOf())}
    WHERE node_id = ${node.id}`;
  return node;
}

type ProbeRow = { id: string; priority: number; created_by: string; lives: number; status: string };
const probesOf = (node: TestNode) => superuser<ProbeRow[]>`
  SELECT id, priority, created_by, extract(epoch FROM expires_at - created_at)::float8 AS lives, status
  FROM tasks WHERE node_id = ${node.id} AND type = ${TYPE} ORDER BY id DESC`;

const host = (kernel: string): HostHealth => ({
  kernel,
  uptime_seconds: 3600,
  load: [0.1, 0.2, 0.3],
  memory: { total_bytes: 8_000_000_000, free_bytes: 1_000_000_000, available_bytes: 4_000_000_000 },
  root_disk: { total_bytes: 100_000_000_000, free_bytes: 50_000_000_000 },
  kvm: { device_present: true, device_opens: false },
  vfio_modules: ["vfio", "vfio_pci"],
  iommu_groups: 12,
  gpus: [],
  links: [{ name: "ens1", state: "up", hardware: true, driver: "mlx5_core", speed_mbps: 200_000 }],
  infiniband: [],
});
const answer = (node: TestNode, kernel = "6.1.0") =>
  answerTasks(replica, node, () => ({ status: "succeeded", result: host(kernel) }));
const shown = (node: TestNode) => api.operator(org.id)(getNode, { params: { node_id: node.id } });

describe("whom", () => {
  it("DIAG-01 every active node that is online, with a task that lets everything else go first and ends soon", async () => {
    const node = await newNode();
    expect(await turn()).toBe(1);
    const probes = await probesOf(node);
    expect(probes).toMatchObject([{ priority: 0, created_by: "holdfast", status: "queued" }]);
    expect(probes[0]?.lives).toBeLessThanOrEqual(60.5);
    expect(await answer(node)).toEqual([TYPE]);
  });

  it.for(["enrolling", "draining", "quarantined"])("DIAG-01 no node that is %s", async (status) => {
    const node = await newNode();
    await superuser`UPDATE nodes SET status = ${status} WHERE id = ${node.id}`;
    expect(await turn()).toBe(0);
  });

  it("DIAG-01 no node that is revoked, silent or never heard of; and a silent one as soon as it is back", async () => {
    const [revoked, silent, unheard] = [await newNode(), await newNode(), await newNode()];
    await superuser`UPDATE nodes SET status = 'quarantined', revoked_at = now() WHERE id = ${revoked.id}`;
    await superuser`
      UPDATE node_presence SET heartbeat_at = ${new Date(clock - 121_000)}, boot_id = 'silent' WHERE node_id = ${silent.id}`;
    await superuser`DELETE FROM node_presence WHERE node_id = ${unheard.id}`;
    expect(await turn()).toBe(0);
    await superuser`UPDATE node_presence SET heartbeat_at = ${new Date(clock)} WHERE node_id = ${silent.id}`;
    expect(await turn()).toBe(1);
  });
});

describe("when", () => {
  it("DIAG-01 ID-14 no node whose heartbeat is from the future, and one that was asked in the future like any other", async () => {
    const [gone, asked] = [await newNode(), await newNode()];
    const future = new Date(clock + 14 * 3_600_000);
    await superuser`
      UPDATE node_presence SET heartbeat_at = ${future}, boot_id = 'silent' WHERE node_id = ${gone.id}`;
    await superuser`
      INSERT INTO node_probes (node_id, org_id, asked_at) VALUES (${asked.id}, ${org.id}, ${future})`;
    expect(await turn()).toBe(1);
    expect(await probesOf(asked)).toHaveLength(1);
    expect(await probesOf(gone)).toHaveLength(0);
  });

  it("DIAG-01 once an interval", async () => {
    const node = await newNode();
    const gaps: number[] = [];
    let last = clock;
    for (let turns = 0; turns < (4 * INTERVAL) / 10; turns += 1) {
      if ((await turn()) === 1) {
        gaps.push((clock - last) / 1000);
        last = clock;
        await answer(node);
      }
      later(10);
    }
    const [first, second, ...others] = gaps;
    expect(first).toBe(0);
    expect(second).toBeGreaterThanOrEqual(INTERVAL / 2);
    expect(second).toBeLessThanOrEqual(1.5 * INTERVAL + 10);
    expect(others.length).toBeGreaterThanOrEqual(2);
    for (const gap of others) expect(Math.abs(gap - INTERVAL)).toBeLessThanOrEqual(10);
  });

  it("DIAG-01 never while the last one is under way, however long ago it was asked for", async () => {
    const node = await newNode();
    await turn();
    later(3 * INTERVAL);
    expect(await turn()).toBe(0);
    await answer(node);
    expect(await turn()).toBe(1);
    expect(await turn()).toBe(0);
  });

  it("DIAG-01 once, when several replicas look at the same moment", async () => {
    const nodes = await Promise.all(Array.from({ length: 30 }, newNode));
    const others = await Promise.all([1, 2, 3].map(() => openReplica(api.database, system)));
    await hearFromNodes();
    const asked = await Promise.all([replica, ...others].map(probe));
    expect(asked.reduce((sum, one) => sum + one)).toBe(nodes.length);
    const [counted] = await superuser<{ tasks: number; nodes: number }[]>`
      SELECT count(*)::int AS tasks, count(DISTINCT node_id)::int AS nodes FROM tasks`;
    expect(counted).toEqual({ tasks: nodes.length, nodes: nodes.length });
  });

  it("DIAG-01 spread over the interval, each node at its own moment, also after all were due at once", async () => {
    const fleet = 600;
    await superuser`
      INSERT INTO nodes (id, org_id, name, status)
      SELECT gen_random_uuid(), ${org.id}, 'fleet-' || n, 'active' FROM generate_series(1, ${fleet}) n`;
    await superuser`
      INSERT INTO node_presence (node_id, org_id, heartbeat_at, instance_id, boot_id, clock_skew_ms, heartbeat)
      SELECT id, org_id, now(), id, 'online', 0, '{}' FROM nodes`;
    const askedIn = async (turns: number) => {
      const asked: number[] = [];
      for (let one = 0; one < turns; one += 1) {
        asked.push(await turn());
        await superuser`DELETE FROM tasks`;
        later(30);
      }
      return asked;
    };
    expect(await askedIn(4)).toEqual([250, 250, 100, 0]);
    // A quarter of them tells as much about the spread, in a quarter of the time.
    const some = fleet / 4;
    await superuser`
      UPDATE nodes SET status = 'draining' WHERE id NOT IN (SELECT id FROM nodes ORDER BY id LIMIT ${some})`;
    await askedIn(50);
    const steady = await askedIn(INTERVAL / 30);
    expect(steady.reduce((sum, one) => sum + one)).toBe(some);
    expect(Math.max(...steady)).toBeLessThan(20);
    expect(steady.filter((one) => one > 0).length).toBeGreaterThan(20);
  });

  it.for([
    ["0", 0],
    ["60", 60],
    ["", 900],
  ] as const)("DIAG-01 as the setting %o says", ([text, seconds]) => {
    const env = { HOLDFAST_NODE_HEALTH_PROBE_INTERVAL_SECONDS: text };
    expect(readSettings(apiSettings, env).nodeHealthProbeIntervalSeconds).toBe(seconds);
  });

  it("DIAG-01 not more often than the setting allows", () => {
    const env = { HOLDFAST_NODE_HEALTH_PROBE_INTERVAL_SECONDS: "59" };
    expect(() => readSettings(apiSettings, env)).toThrow("60 to 86400; 0 never asks");
  });
});

describe("what is told", () => {
  it("DIAG-01 is on the node's page with its time, and the last one counts", async () => {
    const node = await newNode();
    expect((await shown(node)).health).toBeNull();
    await turn();
    const before = Date.now();
    await answer(node, "6.1.0-first");
    await expect.poll(async () => (await shown(node)).health?.host).toEqual(host("6.1.0-first"));
    const { health } = await shown(node);
    expect(Date.parse(health?.observed_at ?? "")).toBeGreaterThanOrEqual(before - 1_000);
    later(2 * INTERVAL);
    await turn();
    await answer(node, "6.1.0-second");
    await expect.poll(async () => (await shown(node)).health?.host.kernel).toBe("6.1.0-second");
  });

  it("DIAG-01 by a probe that somebody ran by hand counts as well", async () => {
    const node = await newNode();
    const params = { node_id: node.id };
    const { id } = await api.operator(org.id)(createTask, { params, body: { type: TYPE } });
    await answer(node, "6.1.0-hand");
    await expect.poll(async () => (await shown(node)).health?.host.kernel).toBe("6.1.0-hand");
    expect((await api.operator(org.id)(getTask, { params: { task_id: id }, query: {} })).status).toBe("completed");
  });

  it("DIAG-01 stays when the next probe fails", async () => {
    const node = await newNode();
    await turn();
    await answer(node, "6.1.0-good");
    await expect.poll(async () => (await shown(node)).health?.host.kernel).toBe("6.1.0-good");
    later(2 * INTERVAL);
    await turn();
    const failure = { code: "executor_failed", message: "no", next_step: "" };
    await answerTasks(replica, node, () => ({ status: "failed", failure }));
    expect((await probesOf(node))[0]?.status).toBe("failed");
    expect((await shown(node)).health?.host.kernel).toBe("6.1.0-good");
  });
});

describe("routine probes", () => {
  async function probedTimes(count: number): Promise<TestNode> {
    const node = await newNode();
    for (let times = 0; times < count; times += 1) {
      expect(await turn()).toBe(1);
      await answer(node);
      later(2 * INTERVAL);
    }
    return node;
  }

  it("DIAG-01 are kept for a short while, three of a node; those by hand as long as any task", async () => {
    const node = await newNode();
    const byHand = () => api.operator(org.id)(createTask, { params: { node_id: node.id }, body: { type: TYPE } });
    const { id: first } = await byHand();
    await answer(node);
    const routine: string[] = [];
    for (let times = 0; times < 6; times += 1) {
      await turn();
      routine.unshift((await probesOf(node))[0]?.id ?? "");
      await answer(node);
      later(2 * INTERVAL);
    }
    expect((await probesOf(node)).map(({ id }) => id)).toEqual([...routine.slice(0, 3), first]);
  });

  it("DIAG-01 are in no list of tasks, unless their type is asked for", async () => {
    const node = await probedTimes(2);
    const list = async (query: object) =>
      (await api.operator(org.id)(listTasks, { query: { node_id: node.id, ...query } })).items;
    const { id } = await api.operator(org.id)(createTask, { params: { node_id: node.id }, body: { type: TYPE } });
    expect((await list({})).map((task) => task.id)).toEqual([id]);
    expect((await list({ status: "completed" })).map((task) => task.id)).toEqual([]);
    expect(await list({ type: TYPE })).toHaveLength(3);
  });

  it("DIAG-01 are no news to an open page", async () => {
    const node = await probedTimes(1);
    const [routine] = await probesOf(node);
    const { id } = await api.operator(org.id)(createTask, { params: { node_id: node.id }, body: { type: TYPE } });
    const heard = Promise.withResolvers<readonly ChangedRow[]>();
    const changes = gatherChanges({
      topics: [taskTopic],
      signals: replica.signals,
      system,
      listening: () => true,
      publish: (_org, _topic, rows) => heard.resolve(rows),
      onFailed: heard.reject,
    });
    replica.signals.publish("task", [routine?.id ?? "", id]);
    expect((await heard.promise).map((row) => row.id)).toEqual([id]);
    changes.stop();
  });

  it("AUDIT-02 leave one event for the first, and then one a day that sums up the others", async () => {
    const node = await probedTimes(1);
    const events = async () => {
      const { items } = await api.operator(org.id)(listAudit, {
        query: { target: node.id, action: "node.probe" },
      });
      return items.map(({ details, actor_type, actor_name, role, result }) => ({
        ...{ actor_type, actor_name, role, result },
        details: details as { count: number; first_seen_at: string; last_seen_at: string },
      }));
    };
    const [first] = await events();
    expect(first).toMatchObject({
      ...{ actor_type: "system", actor_name: "holdfast", role: "system", result: "allowed" },
      details: { type: TYPE, count: 1 },
    });
    const started = clock;
    while (clock < started + 23 * 3_600_000) {
      await turn();
      await answer(node);
      later(2 * INTERVAL);
    }
    expect(await events()).toHaveLength(1);
    later(3600);
    await turn();
    await answer(node);
    const [summary, ...older] = await events();
    expect(older).toEqual([first]);
    expect(summary?.details.count).toBe(47);
    expect(Date.parse(summary?.details.first_seen_at ?? "")).toBe(started);
    expect(Date.parse(summary?.details.last_seen_at ?? "")).toBe(clock);
    // Nothing else tells of them.
    const { items } = await api.operator(org.id)(listAudit, { query: { action: "task.create", limit: 200 } });
    expect(items.filter(({ details }) => (details as { node_id?: string }).node_id === node.id)).toEqual([]);
  });

  it("AUDIT-02 of a node that went away are summed up all the same", async () => {
    const node = await probedTimes(3);
    await superuser`UPDATE node_presence SET heartbeat_at = '2020-01-01', boot_id = 'silent' WHERE node_id = ${node.id}`;
    later(86_400);
    expect(await turn()).toBe(0);
    const { items } = await api.operator(org.id)(listAudit, { query: { target: node.id, action: "node.probe" } });
    expect(items.map(({ details }) => (details as { count: number }).count)).toEqual([2, 1]);
  });
});
