import type { Cause, Explanation } from "@holdfast/contracts/endpoints/drift";
import type { Node, NodeDetail } from "@holdfast/contracts/endpoints/nodes";
import { describe, expect, it } from "vitest";
import { describeNode, nodeTable } from "./describe.ts";
import { describeExplanation } from "./explain.ts";

const server = { url: "https://holdfast.example" };
const now = Date.parse("2030-01-01T12:00:00Z");
const ago = (seconds: number) => new Date(now - seconds * 1000).toISOString();

const healthy: Node = {
  ...{ id: "id-1", name: "rock-1", status: "active", status_reason: null, connection: "online" },
  ...{ heartbeat_at: ago(5), created_at: ago(86_400), agent_version: "0.1.0", os: "debian 13", arch: "x64" },
  ...{ capabilities: ["os_users"], running_tasks: 2, agent_status: "healthy", user_state: "normal" },
  layers: { management: "working", workload: "unknown", access: "unknown" },
  ...{ attention: [], cause_pending: false },
};
const cause: Node["attention"][number] = {
  ...{ code: "connection_lost", reason: "agent_down", title: "Disconnected", severity: "P2", confidence: "low" },
  ...{ owner: "node", owner_id: "node_runtime", next_action: "restart_agent", user_state: "temporary" },
  ...{ hop: "node_heartbeat", hop_detail: "heartbeat", signal: "node_agent_heartbeat_stale" },
  ...{ message: "The agent closed its connection 4 minutes ago.", next_step: "Check `holdfast node show <id>`." },
  ...{ runbook: "/runbooks/connection_lost", correlation_id: "of-the-heartbeat", since: ago(300) },
};
const offline: Node = {
  ...{ ...healthy, name: "rock-2", id: "id-2", connection: "offline", heartbeat_at: ago(240) },
  ...{ agent_status: "stale", user_state: "temporary", attention: [cause, { ...cause, code: "link_slow" }] },
  layers: { management: "impaired", workload: "unknown", access: "unknown" },
};
const columnsOf = (line: string) => line.split(/ {2,}/);

describe("nodes on the command line", () => {
  it("DASH-01 are listed with cause, severity, owner, since, and three layers; what is old says so", () => {
    const lost = {
      ...healthy,
      name: "rock-3",
      connection: "stale" as const,
      heartbeat_at: ago(121),
      cause_pending: true,
    };
    const back = { ...healthy, name: "rock-4", cause_pending: true };
    const lines = nodeTable([offline, lost, back, healthy], { filtered: false, now }).split("\n");
    const [head, ...rows] = lines.map(columnsOf);
    expect(head).toEqual([
      ...["NAME", "STATUS", "CONNECTION", "LAST HEARTBEAT", "SEVERITY", "CAUSE", "OWNER", "SINCE", "USERS SEE"],
      ...["MANAGEMENT", "WORKLOAD", "ACCESS", "AGENT", "SYSTEM", "RUNNING", "ID"],
    ]);
    expect(rows[0]).toEqual([
      ...["rock-2", "active", "■ offline", "4 min ago", "P2", "Disconnected (connection_lost) and 1 more"],
      ...["Host and agent service", "5 min ago", "temporary", "■ impaired", "○ unknown", "○ unknown"],
      ...["0.1.0", "debian 13 x64", "2 (as of 4 min ago)", "id-2"],
    ]);
    expect(rows[1]?.slice(4, 6)).toEqual(["–", "offline, cause being determined"]);
    expect(rows[2]?.slice(4, 6)).toEqual(["–", "back online, being checked"]);
    expect(rows[3]?.slice(4)).toEqual([
      ...[
        "–",
        "–",
        "–",
        "–",
        "normal",
        "● working",
        "○ unknown",
        "○ unknown",
        "0.1.0",
        "debian 13 x64",
        "2",
        "id-1",
      ],
    ]);
  });

  it("DASH-01 are shown with every cause, and facts of an offline node with their age", () => {
    const detail: NodeDetail = {
      ...offline,
      ...{
        facts: null,
        instance_id: null,
        boot_id: null,
        agent_started_at: ago(900),
        link: null,
        link_since: null,
      },
      ...{
        clock_skew_seconds: 0,
        unsent_results: 1,
        certificate: null,
        recovery_token: null,
        profile: null,
        health: null,
      },
      ...{ setup: null, address: "10.0.0.7", provider: "metal", network_side: null },
    };
    const text = describeNode(detail, server, now);
    for (const line of [
      "  connection   ■ offline, last heartbeat 4 min ago",
      "  agent status not reporting",
      "  management   ■ impaired",
      "  workload     ○ unknown",
      "  access       ○ unknown",
      "  agent        0.1.0, started 15 min ago (as of 4 min ago)",
      "  clock        in sync with the server (as of 4 min ago)",
      "  tasks        2 running, 1 results not delivered (as of 4 min ago)",
      "  ! Disconnected: The agent closed its connection 4 minutes ago.",
      "    connection_lost, classified as agent_down, P2, low confidence, owner host and agent service, hop node_heartbeat (heartbeat)",
      "    since 5 min ago; users see temporary",
      "    Check `holdfast node show rock-2`.",
      "  address      10.0.0.7 (as of 4 min ago)",
      "  provider     metal",
      "    runbook https://holdfast.example/runbooks/connection_lost",
      "    correlation id of-the-heartbeat",
    ])
      expect(text.split("\n")).toContain(line);
    const { attention: _, ...well } = detail;
    const online = { ...well, connection: "online" as const, attention: [], cause_pending: false };
    expect(describeNode(online, server, now)).not.toContain("as of");
    expect(describeNode({ ...online, connection: "offline", cause_pending: true }, server, now)).toContain(
      "\n  ! offline, cause being determined",
    );
  });
});

describe("an explanation on the command line", () => {
  const explanation: Explanation = {
    ...{ node_id: "id-1", node_name: "rock-1", at: ago(0), headline: "rock-1 is healthy.", healthy: true },
    ...{ user_state: "normal", causes: [], parts: [], incident: null, part_of: null, clone: null, history: [] },
    repaired_at: null,
    layers: { management: "working", workload: "unknown", access: "unknown" },
    checklist: [
      {
        check: "heartbeat_current",
        state: "done",
        evidence: "heartbeat:1",
        observed_at: new Date().toISOString(),
      },
      { check: "task_completed", state: "unknown", evidence: null, observed_at: null },
      { check: "no_expired_work", state: "failed", evidence: "queue:1", observed_at: new Date().toISOString() },
    ],
    evidence: [],
  };
  const incident = (closed: number): Explanation["history"][number] => ({
    ...{ incident_id: "i", reason: "agent_down", title: "Agent not running", severity: "P2" },
    ...{ began_at: ago(9_000), opened_at: ago(9_000), closed_at: ago(closed), repair_within: 1 },
    ...{ detected_after_seconds: 1, detect_within_seconds: 1, repaired_after_seconds: 1 },
  });

  it("DRIFT-06 has the checklist with its evidence while a node recovers, and for an hour after it", () => {
    const lines = describeExplanation({ ...explanation, healthy: false }, server).split("\n");
    expect(lines).toEqual(
      expect.arrayContaining([
        "To be seen before the node counts as recovered:",
        expect.stringMatching(/^ {2}● Heartbeat current: done, \d+ ms ago, evidence heartbeat:1$/),
        "  ○ A task completed: unknown",
        expect.stringMatching(/^ {2}■ No expired tasks shown as current: failed, \d+ ms ago, evidence queue:1$/),
      ]),
    );
    const repaired_at = new Date(2030, 0, 1, 12, 0, 0).toISOString();
    expect(describeExplanation({ ...explanation, healthy: false, repaired_at }, server)).toContain(
      "To be seen after 2030-01-01 12:00:00 before the node counts as recovered:",
    );
    const shown = (history: Explanation["history"]) =>
      describeExplanation({ ...explanation, history }, server).includes("counts as recovered");
    expect([shown([]), shown([incident(3_599)]), shown([incident(3_601)])]).toEqual([false, true, false]);
  });

  const causeWith = (next_action: Cause["next_action"]): Cause => ({
    ...{
      reason: "node_quarantined",
      title: "Quarantined",
      severity: "P0",
      owner_id: "node_enrollment",
      runbook: null,
    },
    ...{ message: "", next_step: "", signal: null, layer: "management", confidence: "high", next_action },
    ...{ user_state: "normal", also_involves: [], budget: { detect_seconds: 60, repair: 900 }, since: ago(60) },
    ...{ symptoms: [], evidence: [], changed_by: "" },
  });

  it("DASH-08 offers the one next action, with what it does and does not do, and its command", () => {
    const lines = (action: Cause["next_action"]) =>
      describeExplanation({ ...explanation, healthy: false, causes: [causeWith(action)] }, server).split("\n");
    expect(lines("reactivate")).toEqual(
      expect.arrayContaining([
        "  Reactivate node",
        "    + Ends the quarantine: the node gets tasks again.",
        "    - It does not renew or replace the node's certificate.",
        "    > holdfast node reactivate rock-1",
      ]),
    );
    expect(lines("sync_time")).toContain(
      "    > on the host: `timedatectl set-ntp true`, then `timedatectl status`.",
    );
    expect(lines("wait").some((line) => line.startsWith("    > expected to be over by "))).toBe(true);
    expect(lines("replay_task").some((line) => line.startsWith("    >"))).toBe(false);
  });
});
