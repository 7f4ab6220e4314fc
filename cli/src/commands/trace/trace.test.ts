import type { Trace } from "@holdfast/contracts/endpoints/trace";
import { describe, expect, it } from "vitest";
import { describeTrace } from "./trace.ts";

const entry: Trace["items"][number] = {
  ...{ at: "2030-01-01T12:00:00.000Z", kind: "proof", title: "A task completed", code: "task_completed" },
  ...{ detail: "task:1", by: null, node_id: null, ref: { type: "incident", id: "i-1" }, correlation_id: null },
};
const trace: Trace = {
  ...{ id: "i-1", found_as: ["incident"], items: [entry], truncated: false, withheld: [], replicas: [] },
  incidents: [
    {
      ...{ id: "i-1", node_id: "n-1", node_name: "rock-1", reason: "cert_expired", title: "Certificate expired" },
      ...{ state: "closed", opened_at: entry.at, closed_at: entry.at },
    },
  ],
};

describe("a trace on the command line", () => {
  it("DASH-08 has the incident, and a line for each step", () => {
    const lines = describeTrace(trace).split("\n");
    expect(lines[0]).toBe("Incident i-1: rock-1, Certificate expired (cert_expired), closed");
    expect(lines[3]).toMatch(/proof {2}A task completed \(task_completed\) {2}– {3}incident i-1 {2}task:1$/);
    expect(describeTrace(trace)).not.toMatch(/There is more|Left out/);
  });

  it("DASH-08 says what is missing", () => {
    const text = describeTrace({ ...trace, incidents: [], items: [], truncated: true, withheld: ["audit:read"] });
    expect(text).toContain("Trace i-1");
    expect(text).toContain("There is more: of each source the newest 200 entries are shown.");
    expect(text).toContain("lacks the scope: audit:read");
    const replica = { replica: "r-1", dropped: 0, host: "host-1" } as const;
    const replicas = [
      { ...replica, process: "gateway", state: "unreachable" } as const,
      { ...replica, process: "worker", state: "keeps_none" } as const,
    ];
    expect(describeTrace({ ...trace, replicas })).toContain(
      "Unreachable, so its lines are missing: gateway r-1 on host-1",
    );
  });
});
