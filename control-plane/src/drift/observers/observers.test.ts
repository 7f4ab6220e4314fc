import type { Outcome } from "@holdfast/contracts/node/protocol";
import type { DiagnosticReason } from "@holdfast/contracts/reasons/node";
import { describe, expect, it } from "vitest";
import type { TerminalOutcome } from "../../terminals/outcomes.ts";
import type { Recorder } from "../evidence/recorder.ts";
import type { NewObservation } from "../evidence/write.ts";
import { observeDiagnostics } from "./diagnostics.ts";
import { observeHeartbeats } from "./heartbeat.ts";
import { observeRefusals } from "./refusals.ts";

import { observeResults } from "./results.ts";

import { observeTerminals } from "./terminals.ts";

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
      observe({ nodeId, heartbeat: { findings }, at });
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

  it("DRIFT-05 hand on that a terminal opened once a minute, and at once after one failed", () => {
    const { seen, recorder } = recording();
    let now = at.getTime();
    const observe = observeTerminals(recorder, () => now);
    const outcome = (value: TerminalOutcome["value"]) =>
      observe({ nodeId: "a", allocationId: "mine", value, at: new Date(now), step: null, correlationId: "c" });
    outcome("ready");
    outcome("ready");
    outcome("terminal_pty_failed");
    outcome("ready");
    now += 59_999;
    outcome("ready");
    now += 1;
    outcome("ready");
    expect(seen.flat().map(({ value }) => value)).toEqual(["ready", "terminal_pty_failed", "ready", "ready"]);
    // Others on the node have shells that start.
    expect(seen[1]).toMatchObject([{ detail: { allocation_id: "mine" } }]);
    outcome("terminal_node_stream_timeout");
    expect(seen.at(-1)).toMatchObject([{ detail: { step: null } }]);
    expect(seen.at(-1)?.[0]?.detail).not.toHaveProperty("allocation_id");
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
    observe({ nodeId: "a", records: [record("2026-03-01T02:00:00Z"), record("2026-03-01T03:00:20Z")] });
    // A host whose clock is an hour behind, and that says so.
    observe({ nodeId: "a", records: [record("2026-03-01T01:30:00Z")], sentAt: "2026-03-01T02:00:00Z" });
    expect(seen.flat().map(({ observedAt }) => observedAt.toISOString())).toEqual([
      ...["2026-03-01T02:00:00.000Z", "2026-03-01T03:00:00.000Z", "2026-03-01T02:30:00.000Z"],
    ]);
  });

  it("DRIFT-08 DRIFT-09 take records of a clock that was ahead for older than what was recorded since", () => {
    const { seen, recorder } = recording();
    const observe = observeDiagnostics(recorder, () => at.getTime());
    const record = (time: string, reason: DiagnosticReason) => ({
      at: time,
      reason,
      detail: "",
      correlation_id: null,
    });
    const ahead = [
      record("2026-03-01T03:09:00Z", "identity_key_missing"),
      record("2026-03-01T03:09:30Z", "clock_skew"),
    ];
    const back = [
      record("2026-03-01T02:59:58Z", "process_alive"),
      record("2026-03-01T02:59:59Z", "process_alive"),
    ];
    observe({ nodeId: "a", records: [...ahead, ...back] });
    expect(seen.flat().map(({ value, observedAt }) => [value, observedAt.toISOString()])).toEqual([
      ["identity_key_missing", "2026-03-01T02:59:57.998Z"],
      ["clock_skew", "2026-03-01T02:59:57.999Z"],
      ["process_alive", "2026-03-01T02:59:58.000Z"],
      ["process_alive", "2026-03-01T02:59:59.000Z"],
    ]);
    // Nothing says when it was: it is not about the present.
    observe({ nodeId: "a", records: ahead });
    expect(seen.flat()).toHaveLength(4);
  });

  it("DRIFT-01 hand on that a node refuses what was signed for it, and that it accepts work again", () => {
    const { seen, recorder } = recording();
    let now = at.getTime();
    const observe = observeResults(recorder, () => now);
    const failure = (code: string) => ({ code, message: "", next_step: "" });
    const report = (...outcomes: Outcome[]) => observe({ nodeId: "a", outcomes, correlationId: "its-request" });
    const succeeded: Outcome = { status: "succeeded", result: {} };
    const refused = (code: string): Outcome => ({ status: "refused", failure: failure(code) });
    report(succeeded);
    // About this task, or about the host: not about what the server signs.
    report(refused("task_expired"), refused("clock_skew"), {
      status: "failed",
      failure: failure("task_key_unknown"),
    });
    expect(seen).toEqual([]);
    report(succeeded, refused("task_signature_invalid"));
    report(refused("task_type_unknown"));
    now += 5_000;
    report(refused("task_type_unknown"));
    report({ status: "failed", failure: failure("executor_failed") });
    report(succeeded);
    report(succeeded);
    expect(seen.flat().map(({ value, detail }) => [value, detail?.["code"]])).toEqual([
      ["failed", "task_signature_invalid"],
      ["failed", "task_type_unknown"],
      ["passed", undefined],
    ]);
  });
});
