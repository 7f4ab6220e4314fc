// Preflights through the api: run here against a node that answers, handed in, stored, and what becomes evidence.

import { listAudit } from "@holdfast/contracts/endpoints/audit";
import { explainNode } from "@holdfast/contracts/endpoints/drift";
import {
  addPreflightReport,
  getPreflight,
  listPreflights,
  type Preflight,
  startPreflight,
} from "@holdfast/contracts/endpoints/preflights";
import { listTasks } from "@holdfast/contracts/endpoints/tasks";
import { preflightHops } from "@holdfast/contracts/preflight/checks";
import { describeFailure } from "@holdfast/contracts/preflight/failure";
import {
  PREFLIGHT_FORMAT,
  PREFLIGHT_SCHEMA_PATH,
  PreflightReport,
  preflightReportSchema,
} from "@holdfast/contracts/preflight/report";
import type { ReasonCode } from "@holdfast/contracts/reasons/catalogue";
import { beforeAll, describe, expect, it } from "vitest";
import { createOrg, firstAdmin, startTestApi, type TestApi, type TestOrg } from "../../testkit/api/api.ts";
import { firstHeartbeat } from "../../testkit/api/evidence.ts";
import { enrollTestNode, type TestNode } from "../../testkit/api/nodes.ts";
import { probeResult as probed, serveTasks } from "../../testkit/api/preflights.ts";
import { openRoles } from "../../testkit/database/database.ts";
import type { Sql } from "../src/database/connect.ts";
import { interruptAbandoned, removeOldPreflights } from "../src/preflights/queries.ts";

let api: TestApi;
let org: TestOrg;
let system: Sql;
let superuser: Sql;

beforeAll(async () => {
  api = await startTestApi();
  ({ system, superuser } = openRoles(api.database));
  org = await createOrg(api, "preflighted");
});

const client = () => api.operator(org.id);

async function activeNode(hostname?: string): Promise<TestNode> {
  const node = await enrollTestNode(api, org.id, hostname ? { hostname } : {});
  await firstHeartbeat(superuser, node);
  return node;
}

async function finished(id: string): Promise<Preflight> {
  let run: Preflight | undefined;
  await expect
    .poll(
      async () => {
        run = await client()(getPreflight, { params: { preflight_id: id } });
        return run.state;
      },
      { timeout: 90_000 },
    )
    .toBe("finished");
  return run as Preflight;
}

describe("a preflight that the api runs", () => {
  it("PRE-01 PRE-06 checks the node in order, stores each hop, and is the last good one", async () => {
    const node = await activeNode();
    const agent = serveTasks(node, {
      "node.noop": { echo: "preflight" },
      "diag.network_probe": probed([null], [null]),
    });
    const started = await client()(startPreflight, { params: { node_id: node.id }, body: {} });
    expect(started).toMatchObject({ state: "running", result: null, report: null, run_from: "control_plane" });
    const { report, hops, result } = await finished(started.id);
    agent.stop();
    expect({ result, hops: hops.filter(({ status }) => status === "failed") }).toEqual({
      result: "ready",
      hops: [],
    });
    expect(PreflightReport.parse(report)).toEqual(report);
    expect(report?.hops.map((one) => [one.hop, one.status, one.checked_from])).toEqual([
      ["allocation_binding", "not_run", null],
      ["node_heartbeat", "passed", "control_plane"],
      ["node_readiness", "passed", "control_plane"],
      ["node_recovery_status", "passed", "control_plane"],
      ["node_runtime_api_reachability", "passed", "node"],
      ["node_task_round_trip", "passed", "node"],
      ["terminal_token_mint", "not_run", null],
      ["terminal_public_route", "not_run", null],
      ["browser_terminal_ws", "not_run", null],
      ["terminal_open_task", "not_run", null],
      ["node_terminal_reachability", "passed", "node"],
      ["gateway_node_stream", "not_run", null],
      ["terminal_ready_frame", "not_run", null],
      ["workload_terminal_startup_failure", "not_run", null],
    ]);
    const { items } = await client()(listPreflights, { query: { node_id: node.id, result: "ready", limit: 1 } });
    expect(items).toMatchObject([{ id: started.id, correlation_id: started.correlation_id }]);
    const audit = await client()(listAudit, { query: { correlation_id: started.correlation_id } });
    expect(audit.items.map(({ action }) => action)).toEqual(
      expect.arrayContaining(["preflight.start", "task.create"]),
    );
  });

  it("PRE-02 names the terminal listener that the node cannot reach", async () => {
    const node = await activeNode();
    const agent = serveTasks(node, {
      "node.noop": { echo: null },
      "diag.network_probe": probed([null], ["tcp_timeout"]),
    });
    const { id } = await client()(startPreflight, { params: { node_id: node.id }, body: {} });
    const { report } = await finished(id);
    agent.stop();
    expect(report).toMatchObject({
      ...{ result: "failed", failed_hop: "node_terminal_reachability", owner: "endpoint_profile" },
      classification: { signal: "terminal_node_stream_timeout" },
    });
  });

  it("PRE-02 names a task that nobody takes, cancels it, and runs one at a time", async () => {
    const node = await activeNode();
    const agent = serveTasks(node, { "diag.network_probe": probed([null], [null]) });
    const { id } = await client()(startPreflight, { params: { node_id: node.id }, body: {} });
    const second = client()(startPreflight, { params: { node_id: node.id }, body: {} });
    await expect(second).rejects.toMatchObject({ envelope: { code: "conflict" } });
    const { report, hops } = await finished(id);
    agent.stop();
    expect(report).toMatchObject({ failed_hop: "node_task_round_trip", owner: "api" });
    expect(report?.classification?.signal).toBe("node_task_result_post_failed");
    expect(hops.find((one) => one.hop === "node_terminal_reachability")).toMatchObject({ why: "after_failure" });
    const { items } = await client()(listTasks, { query: { node_id: node.id, type: "node.noop" } });
    expect(items.every(({ cancel_requested_at }) => cancel_requested_at !== null)).toBe(true);
  });

  it("PRE-01 goes on from a silent node to its cause, and names the symptom without one", async () => {
    const node = await activeNode();
    await superuser`UPDATE node_presence SET heartbeat_at = now() - interval '1 hour' WHERE node_id = ${node.id}`;
    const { id } = await client()(startPreflight, { params: { node_id: node.id }, body: {} });
    const { report } = await finished(id);
    expect(report).toMatchObject({ result: "failed", failed_hop: "node_heartbeat", owner: "node_runtime" });
    expect(report?.classification?.signal).toBe("node_agent_heartbeat_stale");
    const notRun = report?.hops.filter(({ why }) => why === "no_evidence").map((one) => one.hop);
    expect(notRun).toEqual(expect.arrayContaining(["node_readiness", "node_terminal_reachability"]));
  });

  it("PRE-06 has no more rights than its caller, also by a browser's session", async () => {
    const node = await activeNode();
    const browser = await firstAdmin(api);
    const mine = browser.client(org.id);
    const agent = serveTasks(node, { "node.noop": { echo: null }, "diag.network_probe": probed([null], [null]) });
    const run = await mine(startPreflight, { params: { node_id: node.id }, body: {} });
    expect((await finished(run.id)).result).toBe("ready");
    agent.stop();
    const foreign = await createOrg(api, "elsewhere");
    const there = api.operator(foreign.id);
    await expect(there(getPreflight, { params: { preflight_id: run.id } })).rejects.toMatchObject({ status: 404 });
    await expect(there(startPreflight, { params: { node_id: node.id }, body: {} })).rejects.toMatchObject({
      status: 404,
    });
    expect((await there(listPreflights, {})).items).toEqual([]);
  });
});

function reportOf(node: TestNode, failures: Partial<Record<string, ReasonCode>> = {}): PreflightReport {
  const [failed_hop = null] = preflightHops.filter((name) => name in failures);
  const at = new Date().toISOString();
  const classification = failed_hop ? describeFailure(failures[failed_hop] as ReasonCode, node.id) : null;
  return {
    ...{ format: PREFLIGHT_FORMAT, started_at: at, finished_at: at, allocation_id: null, node_id: node.id },
    ...{
      session_id: null,
      correlation_id: "pf-1",
      hostname: "machine-one",
      provider: null,
      private_ip: "10.0.0.4",
    },
    expected: {
      ...{ api_url: null, terminal_url: null, node_runtime_api_url: null, node_runtime_resolve_address: null },
      ...{ node_terminal_url: null, node_terminal_resolve_address: null, profile: null },
    },
    ...{ disk: null, result: failed_hop ? "failed" : "ready", failed_hop, symptom_hop: null, classification },
    ...{ owner: classification?.owner ?? null, ssh: "succeeded", browser_proof: null, compared_with: null },
    hops: preflightHops.map((name) => {
      const code = failures[name];
      const { message: _, runbook: __, ...failure } = describeFailure(code ?? "agent_down", node.id);
      return {
        ...{
          hop: name,
          status: code ? "failed" : "passed",
          why: null,
          checked_from: "node",
          detail: "seen",
          ms: 1,
        },
        failure: code ? failure : null,
      } as const;
    }),
  };
}

describe("a report that is handed in", () => {
  it("PRE-06 DRIFT-08 is stored, and what the host said becomes evidence of the observer preflight", async () => {
    const node = await activeNode();
    const report = reportOf(node, { node_runtime_api_reachability: "api_name_unresolved" });
    const stored = await client()(addPreflightReport, { body: { report } });
    expect(stored).toMatchObject({ state: "finished", result: "failed", run_from: "command_line", report });
    const { evidence } = await client()(explainNode, { params: { node_id: node.id } });
    const seen = evidence.filter(({ observer }) => observer === "preflight");
    expect(seen).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ kind: "diagnostic", value: "api_name_unresolved" }),
        expect.objectContaining({ kind: "ssh", value: "succeeded" }),
      ]),
    );
  });

  it("PRE-06 is refused for a foreign node, and if it is not a report", async () => {
    const node = await activeNode();
    const foreign = api.operator((await createOrg(api, "others")).id);
    await expect(foreign(addPreflightReport, { body: { report: reportOf(node) } })).rejects.toMatchObject({
      status: 404,
    });
    const wrong = { ...reportOf(node), hops: [] } as never;
    await expect(client()(addPreflightReport, { body: { report: wrong } })).rejects.toMatchObject({ status: 400 });
  });

  it("PRE-06 is removed after its time, but not the last good one; an abandoned run ends", async () => {
    const node = await activeNode();
    const ids: string[] = [];
    for (const failures of [{}, {}, { node_readiness: "disk_full" as const }])
      ids.push((await client()(addPreflightReport, { body: { report: reportOf(node, failures) } })).id);
    await superuser`UPDATE preflights SET started_at = now() - interval '40 days' WHERE node_id = ${node.id}`;
    await removeOldPreflights(system, { days: 30 });
    const left = await client()(listPreflights, { query: { node_id: node.id } });
    expect(left.items.map(({ id }) => id)).toEqual([ids[1]]);
    await superuser`
      INSERT INTO preflights (id, org_id, node_id, state, run_from, runner_name, correlation_id, started_at)
      VALUES (gen_random_uuid(), ${org.id}, ${node.id}, 'running', 'control_plane', 'x', 'y', now() - interval '3 minutes')`;
    expect(await interruptAbandoned(system)).toHaveLength(1);
  });
});

it("PRE-01 the schema of reports is published", async () => {
  const response = await fetch(`${api.url}${PREFLIGHT_SCHEMA_PATH}`);
  expect(response.status).toBe(200);
  expect(await response.json()).toEqual(JSON.parse(JSON.stringify(preflightReportSchema())));
});
