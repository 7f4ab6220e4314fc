import type { IncidentDetail } from "@holdfast/contracts/endpoints/incidents";
import { describe, expect, it } from "vitest";
import { describeIncident } from "./incident.ts";

const [node, common, host] = [
  "018f0000-0000-7000-8000-000000000001",
  "018f0000-0000-7000-8000-000000000002",
  "018f0000-0000-7000-8000-000000000003",
];
const time = "2026-03-01T14:02:00.000Z";
const ofNode: IncidentDetail = {
  ...{ id: node, node_id: host, node_name: "vm-1", part_of: common, shared: null, node_count: 1, state: "open" },
  ...{
    reason: "disk_full",
    title: "Disk full",
    severity: "P1",
    owner_id: "node_runtime",
    next_action: "free_disk",
  },
  ...{ runbook: null, signal: null, user_state: "temporary", began_at: time, opened_at: time, closed_at: null },
  ...{ detect_within_seconds: 300, repair_within: "3600", nodes: [], episodes: ["on-host-1"], verdicts: [] },
};
const sentence = "3 of your nodes with agent version 2.0 have the same problem since 2026-03-01 14:02 UTC.";

describe("an incident on the command line", () => {
  it("DRIFT-09 of a node leads to what it is part of, to its tasks and to its audit", () => {
    const text = describeIncident(ofNode);
    expect(text).toMatch(/^vm-1: Disk full \(disk_full\), open\n/);
    expect(text).toContain(`holdfast incident show ${common}`);
    expect(text).toContain(`holdfast task list --incident ${node}`);
    expect(text).toContain(`holdfast audit list --incident ${node}`);
    expect(text).toContain("on-host-1");
  });

  it("DRIFT-04 of several nodes says what they share, and leads to each of them", () => {
    const text = describeIncident({
      ...ofNode,
      ...{ id: common, node_id: null, node_name: null, part_of: null, node_count: 3, episodes: [] },
      shared: { attribute: "agent_version", value: "2.0", suspected: false, sentence },
      nodes: [{ id: host, name: "vm-1", incident_id: node, state: "open" }],
    });
    expect(text).toMatch(/^3 nodes: Disk full \(disk_full\), open\n/);
    expect(text).toContain(sentence);
    expect(text).toContain(`holdfast incident list --part-of ${common}`);
    expect(text).toMatch(new RegExp(`vm-1 +open +${node}`));
  });
});
