import { describe, expect, it } from "vitest";
import type { Recorder } from "../evidence/recorder.ts";
import type { NewObservation } from "../evidence/write.ts";
import { observeDiagnostics } from "./diagnostics.ts";
import { observeHeartbeats } from "./heartbeat.ts";
import { observeRefusals } from "./refusals.ts";

const at = new Date("2026-03-01T03:00:00Z");

function recording() {
  const seen: NewObservation[][] = [];
  const recorder: Recorder = { observe: (_nodeId, observations) => void seen.push([...observations]) };
  return { seen, recorder };
}

describe("observers", () => {
  it("DRIFT-01 hand on the findings of a heartbeat when they changed, and those of a node's first", () => {
    const { seen, recorder } = recording();
    const observe = observeHeartbeats(recorder);
    const beat = (nodeId: string, ...reasons: string[]) => {
      const findings = reasons.map((reason) => ({ reason, detail: "as it is", correlation_id: "its-record" }));
      observe({ nodeId, heartbeat: { findings }, at, correlationId: "its-heartbeat" });
    };
    beat("a");
    beat("a");
    beat("b", "disk_full");
    beat("a", "clock_skew", "disk_full");
    beat("a", "disk_full", "clock_skew", "no code at all");
    beat("a");
    expect(seen.map((observations) => observations.map(({ nodeId, key }) => `${nodeId} ${key}`))).toEqual([
      ...[[], ["b disk_full"], ["a clock_skew", "a disk_full"], []],
    ]);
    expect(seen[1]).toMatchObject([
      { value: "present", observedAt: at, correlationId: "its-record", detail: { text: "as it is" } },
    ]);
  });

  it("ID-14 hand on a refusal of a node and code once in five seconds", () => {
    const { seen, recorder } = recording();
    let now = at.getTime();
    const observe = observeRefusals(recorder, () => now);
    const refuse = (nodeId: string, code: "cert_expired" | "identity_revoked") =>
      observe({ nodeId, code, serial: "00", correlationId: "c" });
    for (let second = 0; second < 10; second += 1) {
      refuse("a", "cert_expired");
      now += 1_000;
    }
    refuse("b", "cert_expired");
    refuse("b", "identity_revoked");
    expect(seen.flat().map(({ nodeId, value }) => `${nodeId} ${value}`)).toEqual([
      ...["a cert_expired", "a cert_expired", "b cert_expired", "b identity_revoked"],
    ]);
  });

  it("DRIFT-08 take the time of a record from the record, but none in the future", () => {
    const { seen, recorder } = recording();
    const observe = observeDiagnostics(recorder, () => at.getTime());
    const record = (time: string) => ({
      at: time,
      reason: "disk_full" as const,
      detail: "",
      correlation_id: null,
    });
    observe({ nodeId: "a", records: [record("2026-03-01T02:00:00Z"), record("2026-03-01T04:00:00Z")] });
    expect(seen.flat().map(({ observedAt }) => observedAt.toISOString())).toEqual([
      ...["2026-03-01T02:00:00.000Z", "2026-03-01T03:00:00.000Z"],
    ]);
  });
});
