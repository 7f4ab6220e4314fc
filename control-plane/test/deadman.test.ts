// The dead-man's switch: a monitor outside is requested after full round trips through the canary node, and only then.

import { hostname } from "node:os";
import { getPlatformStatus } from "@holdfast/contracts/endpoints/platform";
import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, describe, expect, it } from "vitest";
import { startTestApi } from "../../testkit/api/api.ts";
import { quiet } from "../../testkit/api/replica.ts";
import { atOnce, ended, openTaskLab, type Replica, succeeded, type TaskLab } from "../../testkit/api/tasks.ts";
import { startWebhookServer, type WebhookServer } from "../../testkit/receivers/webhook-server.ts";
import { type Deadman, pingAfterRoundTrip } from "../src/notify/deadman/ping.ts";
import { findCanary } from "../src/notify/deadman/round-trip.ts";

let lab: TaskLab;
let replica: Replica;
let monitor: WebhookServer;

beforeAll(async () => {
  [lab, monitor] = await Promise.all([openTaskLab(), startWebhookServer()]);
  replica = await lab.newReplica();
});

async function canaryOf(change: { host?: string; name?: string } = {}): Promise<string> {
  const id = await lab.newNode();
  await lab.superuser`
    UPDATE nodes SET name = ${change.name ?? id} WHERE id = ${id}`;
  await lab.superuser`
    INSERT INTO node_presence (node_id, org_id, heartbeat_at, instance_id, boot_id, clock_skew_ms, heartbeat)
    VALUES (${id}, ${lab.orgId}, now(), ${uuidv7()}, 'boot', 0,
      ${JSON.stringify({ facts: { hostname: change.host ?? "elsewhere" } })}::text::json)
    ON CONFLICT (node_id) DO UPDATE SET heartbeat = excluded.heartbeat, heartbeat_at = now()`;
  return id;
}
const settingsFor = (node: string | undefined, intervalSeconds = 60) => ({
  ...{
    deadmanUrl: monitor.url,
    deadmanIntervalSeconds: intervalSeconds,
    deadmanNode: node,
    staleAfterSeconds: 120,
  },
});
const ping = (deadman: Deadman, settings: ReturnType<typeof settingsFor>) =>
  pingAfterRoundTrip({ system: lab.system, tasks: replica.engine, log: quiet, deadman }, settings);

/** Takes one task and reports what became of it. */
async function work(nodeId: string, report = (id: string, generation: number) => succeeded(id, generation)) {
  const { tasks } = await replica.engine.wait(nodeId, { ...atOnce({ room: 1 }), waitMs: 30_000 });
  await replica.engine.results(
    nodeId,
    tasks.map(({ task_id, generation }) => report(task_id, generation)),
  );
}

describe("the monitor outside", () => {
  it("DRIFT-16 is requested when a task made the full round trip", async () => {
    const id = await canaryOf();
    monitor.received = [];
    const deadman: Deadman = {};
    const [result] = await Promise.all([ping(deadman, settingsFor(id)), work(id)]);
    expect(result.pinged).toBe(1);
    expect(monitor.received).toHaveLength(1);
    expect(deadman.pingedAt).toBeGreaterThanOrEqual(deadman.roundTripAt ?? Number.POSITIVE_INFINITY);
    expect(await lab.superuser`SELECT FROM tasks WHERE node_id = ${id}`).toHaveLength(0);
  });

  it("DRIFT-16 is not requested when no agent takes the task, or it fails", async () => {
    const id = await canaryOf();
    monitor.received = [];
    const deadman: Deadman = {};
    await expect(ping(deadman, settingsFor(id, 1))).rejects.toThrow("was not completed: the task is queued");
    expect(await lab.superuser`SELECT FROM tasks WHERE node_id = ${id}`).toHaveLength(0);
    const other = await canaryOf();
    await Promise.all([
      expect(ping(deadman, settingsFor(other))).rejects.toThrow("was not completed: the task is failed"),
      work(other, (task, generation) => ended(task, generation, "failed")),
    ]);
    expect(monitor.received).toEqual([]);
    expect(deadman).toEqual({});
  });

  it("DRIFT-16 that does not accept it is reported as a failure of the job", async () => {
    const id = await canaryOf();
    monitor.answer = (response) => response.writeHead(500).end("broken");
    const deadman: Deadman = {};
    await Promise.all([expect(ping(deadman, settingsFor(id))).rejects.toThrow("500 broken"), work(id)]);
    monitor.answer = (response) => response.end();
    expect(deadman.pingedAt).toBeUndefined();
    expect(deadman.roundTripAt).toBeDefined();
  });

  it("TASK-08 leaves one audit event for the first round trip of a day, and a count for the rest", async () => {
    const id = await canaryOf();
    await lab.superuser`DELETE FROM canary_round_trips`;
    for (const _ of [1, 2, 3]) await Promise.all([ping({}, settingsFor(id)), work(id)]);
    const events = () => lab.superuser`SELECT details FROM audit_events WHERE target_id = ${id} ORDER BY id`;
    expect((await events()).map(({ details }) => details.count)).toEqual([1]);
    await lab.superuser`UPDATE canary_round_trips SET audited_at = now() - interval '1 day'`;
    await Promise.all([ping({}, settingsFor(id)), work(id)]);
    expect((await events()).map(({ details }) => details.count)).toEqual([1, 3]);
  });
});

describe("the canary node", () => {
  const find = (wanted?: string) => findCanary(lab.system, { wanted, staleAfterSeconds: 120 });

  it("DRIFT-16 is the one that was set, or an online one on this machine", async () => {
    await expect(find()).rejects.toThrow("no node on this machine is online");
    const here = await canaryOf({ host: hostname() });
    expect((await find()).id).toBe(here);
    await lab.superuser`UPDATE node_presence SET heartbeat_at = now() - interval '121 seconds' WHERE node_id = ${here}`;
    await expect(find()).rejects.toThrow("no node on this machine is online");
    const named = await canaryOf({ name: "canary" });
    expect((await find("canary")).id).toBe(named);
    expect((await find(named.toUpperCase())).id).toBe(named);
    await lab.superuser`UPDATE nodes SET status = 'draining' WHERE id = ${named}`;
    await expect(find("canary")).rejects.toThrow("no active node has the id or name canary");
  });
});

describe("an api without the node", () => {
  it("DRIFT-16 shows in its status that nothing is sent, and why", async () => {
    monitor.received = [];
    const api = await startTestApi({
      env: { HOLDFAST_DEADMAN_URL: monitor.url, HOLDFAST_DEADMAN_INTERVAL_SECONDS: "5" },
    });
    await expect
      .poll(async () =>
        (await api.operator()(getPlatformStatus, {})).jobs.find(({ name }) => name === "ping-deadman"),
      )
      .toMatchObject({
        state: "failing",
        last_failure: expect.stringContaining("no node on this machine is online"),
      });
    expect(monitor.received).toEqual([]);
  });
});
