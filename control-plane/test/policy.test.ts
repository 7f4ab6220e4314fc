// Values of the policy that are changed while api and worker run.

import { listPlatformAudit } from "@holdfast/contracts/endpoints/audit";
import { explainNode } from "@holdfast/contracts/endpoints/drift";
import { getFleet } from "@holdfast/contracts/endpoints/fleet";
import { getNode } from "@holdfast/contracts/endpoints/nodes";
import { changePolicy, listPolicy, type PolicyKey, policyKeys } from "@holdfast/contracts/endpoints/policy";
import { readSettings } from "@holdfast/kit/settings";
import { createLog } from "@holdfast/service/log";
import { beforeAll, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg } from "../../testkit/api/api.ts";
import { firstHeartbeat } from "../../testkit/api/evidence.ts";
import { enrollTestNode, type TestNode } from "../../testkit/api/nodes.ts";
import { openRoles } from "../../testkit/database/database.ts";
import { atEnd } from "../../testkit/lifetime/at-end.ts";
import type { Sql } from "../src/database/connect.ts";
import { recordObservations } from "../src/drift/evidence/write.ts";
import { allPolicySettings, policyEntry } from "../src/policy/keys.ts";
import { openPolicies } from "../src/policy/live.ts";
import { shortenTokens } from "../src/recovery/upkeep.ts";
import { startWorker } from "../src/worker/main.ts";
import { workerSettings } from "../src/worker/settings.ts";

let api: TestApi;
let other: TestApi;
let org: TestOrg;
let node: TestNode;
let system: Sql;
let superuser: Sql;
const log = createLog({ process: "test", level: "silent" });

beforeAll(async () => {
  api = await startTestApi();
  other = await startTestApi({ database: api.database });
  ({ system, superuser } = openRoles(api.database));
  const settings = readSettings(workerSettings, { HOLDFAST_SYSTEM_DATABASE_URL: api.database.systemUrl });
  const worker = await startWorker(settings, log);
  atEnd(() => worker.stop());
  org = await createOrg(api, "ours");
  node = await enrollTestNode(api, org.id);
  await firstHeartbeat(superuser, node);
});

const change = (key: PolicyKey, value: string | null, reason?: string) =>
  api.operator()(changePolicy, { body: { key, value, ...(reason === undefined ? {} : { reason }) } });
const params = () => ({ node_id: node.id });
const heardAgo = (seconds: number) => superuser`
  UPDATE node_presence SET heartbeat_at = now() - ${seconds} * interval '1 second', disconnected_at = NULL
  WHERE node_id = ${node.id}`;
const slow = { timeout: 30_000 };

describe("a value of the policy", () => {
  it("DRIFT-12 is the setting of the process until it is changed", async () => {
    const { items } = await api.operator()(listPolicy, {});
    expect(items.map(({ key }) => key)).toEqual([...policyKeys]);
    expect(items.find(({ key }) => key === "node.recovery_token_max_age_seconds")).toMatchObject({
      ...{ value: "86400", default_value: "86400", changed_at: null, reason: null },
      setting: "HOLDFAST_NODE_RECOVERY_TOKEN_MAX_AGE_SECONDS",
    });
  });

  it("DRIFT-12 is used by other apis and by workers without a restart, and after a restart", async () => {
    await heardAgo(60);
    const seen = async () => {
      const [fleet, mine, theirs, explained] = await Promise.all([
        other.operator(org.id)(getFleet, {}),
        api.operator(org.id)(getNode, { params: params() }),
        other.operator(org.id)(getNode, { params: params() }),
        other.operator(org.id)(explainNode, { params: params() }),
      ]);
      const [verdict] = await superuser<{ reporting: boolean }[]>`
        SELECT reporting FROM node_verdicts WHERE node_id = ${node.id}`;
      const silent = explained.causes.some(({ reason }) => reason === "agent_down");
      return [
        fleet.states.silent === 0,
        mine.connection === "online",
        theirs.connection === "online",
        !silent,
        verdict?.reporting,
      ];
    };
    await expect.poll(seen, slow).toEqual([true, true, true, true, true]);
    await change("node.heartbeat_stale_after_seconds", "30");
    await expect.poll(seen, slow).toEqual([false, false, false, false, false]);
    const restarted = await openPolicies(system, readSettings(allPolicySettings, {}), log);
    expect(restarted.settings.nodeHeartbeatStaleSeconds).toBe(30);
    await heardAgo(60);
    await change("node.heartbeat_stale_after_seconds", null, "the drill is over");
    await heardAgo(60);
    await expect.poll(seen, slow).toEqual([true, true, true, true, true]);
  });

  it("DRIFT-12 of the classifier concerns nodes that do not change", async () => {
    const full = await enrollTestNode(api, org.id);
    await firstHeartbeat(superuser, full);
    await recordObservations(system, [
      {
        ...{ nodeId: full.id, kind: "disk", value: "measured", observer: "agent", observedAt: new Date() },
        detail: { used_percent: 50 },
      },
    ]);
    const verdict = async () => {
      const [row] = await superuser<{ pressed: boolean; due: boolean }[]>`
        SELECT strpos(causes::text, 'node_observability_disk_pressure') > 0 AS pressed, review_at <= now() AS due
        FROM node_verdicts WHERE node_id = ${full.id}`;
      return row;
    };
    await expect.poll(verdict, slow).toEqual({ pressed: false, due: false });
    await change("node.disk_pressure_percent", "1");
    await expect.poll(verdict, slow).toMatchObject({ pressed: true });
    await change("node.disk_pressure_percent", null, "a drill");
  });

  it("DRIFT-12 is tightened freely, and weakened only with a reason, which the audit has", async () => {
    await change("node.recovery_token_max_age_seconds", "3600");
    await expect(change("node.recovery_token_max_age_seconds", "7200")).rejects.toMatchObject({
      envelope: { code: "policy_reason_missing" },
    });
    await expect(change("node.recovery_token_max_age_seconds", null)).rejects.toMatchObject({
      envelope: { code: "policy_reason_missing" },
    });
    const changed = await change("node.recovery_token_max_age_seconds", "7200", "long maintenance");
    expect(changed).toMatchObject({ value: "7200", default_value: "86400", reason: "long maintenance" });
    const { items } = await api.operator()(listPlatformAudit, { query: { action: "policy.change" } });
    const events = items.filter(({ target_id }) => target_id === "node.recovery_token_max_age_seconds");
    expect(events.map(({ result, reason, details }) => ({ result, reason, details })).slice(0, 1)).toMatchObject([
      {
        result: "allowed",
        details: { from: "3600", to: "7200", weaker: true, reason: "long maintenance" },
      },
    ]);
    expect(items.filter(({ reason }) => reason === "policy_reason_missing")).toHaveLength(2);
  });

  it("DRIFT-12 is refused if the setting would not allow it", async () => {
    const refused = { envelope: { code: "invalid_request" } };
    await expect(change("node.quarantine_clones", "maybe", "why not")).rejects.toMatchObject(refused);
    await expect(change("node.disk_pressure_percent", "98", "why not")).rejects.toMatchObject(refused);
  });

  it("DRIFT-12 that this version does not understand does not apply", async () => {
    await superuser`INSERT INTO policy_values (key, value) VALUES ('node.quarantine_clones', 'sometimes'), ('node.future', '1')`;
    const { settings } = await openPolicies(system, readSettings(allPolicySettings, {}), log);
    expect(settings.nodeQuarantineClones).toBe("on");
    await superuser`DELETE FROM policy_values WHERE key IN ('node.quarantine_clones', 'node.future')`;
  });

  it("DRIFT-12 ends recovery tokens that are older than a new limit", async () => {
    await superuser`
      INSERT INTO recovery_tokens (node_id, seq, org_id, profile, secret_hash, issued_at, expires_at)
      VALUES (${node.id}, 1000001, ${org.id}, 'default', '\\x01', now() - interval '2 hours', now() + interval '22 hours'),
             (${node.id}, 1000002, ${org.id}, 'default', '\\x02', now(), now() + interval '10 minutes')`;
    await change("node.recovery_token_max_age_seconds", "1800");
    const rows = await superuser<{ works: boolean }[]>`
      SELECT expires_at > now() AS works FROM recovery_tokens WHERE seq > 1000000 ORDER BY seq`;
    expect(rows.map(({ works }) => works)).toEqual([false, true]);
    await system.begin((tx) => shortenTokens(tx, 86_400));
    const [kept] = await superuser<{ minutes: number }[]>`
      SELECT round(extract(epoch FROM expires_at - now()) / 60)::int AS minutes FROM recovery_tokens WHERE seq = 1000002`;
    expect(kept?.minutes).toBe(10);
  });
});

describe("weaker", () => {
  it.each<[PolicyKey, unknown, unknown, boolean]>([
    ["node.heartbeat_stale_after_seconds", 120, 121, true],
    ["node.heartbeat_stale_after_seconds", 120, 119, false],
    ["node.heartbeat_stale_after_seconds", 120, 120, false],
    ["node.disk_pressure_percent", 90, 95, true],
    ["audit.dedupe_window_seconds", 300, 600, true],
    ["node.task_stale_sweep_interval_seconds", 60, 30, false],
    ["node.recovery_token_max_age_seconds", 300, 301, true],
    ["node.health_probe_interval_seconds", 900, 0, true],
    ["node.health_probe_interval_seconds", 0, 900, false],
    ["node.health_probe_interval_seconds", 0, 0, false],
    ["node.health_probe_interval_seconds", 900, 901, true],
    ["node.quarantine_clones", "on", "off", true],
    ["node.quarantine_clones", "off", "on", false],
    ["node.quarantine_clones", "off", "off", false],
    ["node.automatic_recovery", "off", "on", true],
    ["node.automatic_recovery", "on", "off", false],
  ])("DRIFT-12 %s from %s to %s: %s", (key, from, to, expected) => {
    expect(policyEntry(key).isWeaker(from, to)).toBe(expected);
  });
});
