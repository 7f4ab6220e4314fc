import { recoveryCheckStates, recoveryChecks } from "@holdfast/contracts/endpoints/drift";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Kind, Observation, Values } from "../evidence/observation.ts";
import { defaultPolicy as policy } from "../policy.ts";
import { checklistOf } from "./checklist.ts";

const now = Date.parse("2030-01-01T12:00:00Z");
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

function saw<K extends Kind>(
  kind: K,
  value: Values[K],
  ageMs = 1_000,
  detail?: Observation["detail"],
): Observation {
  const at = now - ageMs;
  const common = { id: `${kind} ${value}`, kind, value, observer: "agent", observedAt: at, receivedAt: at };
  return { ...common, detail } as Observation;
}
const valid = { not_before: now - HOUR, not_after: now + 20 * HOUR };
const issued = saw("certificate", "issued", 30 * MINUTE, valid);
const heard = saw("heartbeat", "received", 10_000);
const silent = saw("heartbeat", "received", 10 * MINUTE);
const done = saw("task", "completed", 5_000);
const queue = saw("queue", "current", 0);

const checked = (evidence: readonly Observation[], incidentBeganAt?: number) =>
  checklistOf(evidence, { policy, now, incidentBeganAt });
const states = (evidence: readonly Observation[], incidentBeganAt?: number) =>
  checked(evidence, incidentBeganAt).map(({ state }) => state);

describe("the recovery checklist", () => {
  it("DRIFT-06 is done in full by a heartbeat, a completed task and a clean queue, each with its evidence", () => {
    const list = checked([heard, issued, done, queue], now - 20 * MINUTE);
    expect(list.map(({ check }) => check)).toEqual([...recoveryChecks]);
    expect(list.map(({ state, evidence }) => [state, evidence])).toEqual([
      ["done", "heartbeat received"],
      ["done", "heartbeat received"],
      ["done", "heartbeat received"],
      ["done", "task completed"],
      ["done", "queue current"],
    ]);
  });

  it("DRIFT-06 is unknown where nothing was seen", () => {
    expect(states([])).toEqual(["unknown", "unknown", "unknown", "unknown", "unknown"]);
  });

  it.each<[string, Observation[], number | undefined, string]>([
    ["a node that is silent", [silent, issued, queue], undefined, "failed unknown unknown unknown done"],
    [
      "a task from before the incident",
      [heard, issued, saw("task", "completed", 30 * MINUTE)],
      now - 20 * MINUTE,
      "done done done unknown unknown",
    ],
    [
      "a task from long ago",
      [heard, issued, saw("task", "completed", 61 * MINUTE)],
      undefined,
      "done done done unknown unknown",
    ],
    [
      "a certificate that no heartbeat came with yet",
      [heard, saw("certificate", "issued", 5_000, valid)],
      undefined,
      "done unknown done unknown unknown",
    ],
    [
      "a certificate that the ingress does not trust",
      [heard, issued, saw("ca_trust", "mismatch")],
      undefined,
      "done failed done unknown unknown",
    ],
    [
      "a comparison that is too old",
      [heard, issued, saw("ca_trust", "mismatch", HOUR)],
      undefined,
      "done done done unknown unknown",
    ],
    ["a comparison alone", [silent, saw("ca_trust", "match")], undefined, "failed done unknown unknown unknown"],
    [
      "an expired certificate",
      [silent, saw("certificate", "issued", 25 * HOUR, { not_before: now - 25 * HOUR, not_after: now - HOUR })],
      undefined,
      "failed failed unknown unknown unknown",
    ],
    [
      "a refused identity",
      [silent, issued, saw("standing", "active", HOUR), saw("refusal", "identity_revoked")],
      undefined,
      "failed unknown failed unknown unknown",
    ],
    [
      "tasks that are refused",
      [heard, issued, saw("task_verification", "failed")],
      undefined,
      "done done done failed unknown",
    ],
    [
      "results that do not arrive",
      [heard, issued, saw("dispatched_tasks", "past_lease")],
      undefined,
      "done done done failed unknown",
    ],
    [
      "a task completed after those",
      [heard, issued, saw("dispatched_tasks", "past_lease"), done],
      undefined,
      "done done done done unknown",
    ],
    [
      "expired tasks",
      [heard, issued, saw("queued_tasks", "past_expiry"), queue],
      undefined,
      "done done done unknown failed",
    ],
    [
      "expired tasks that are shown as queued",
      [heard, issued, saw("queue", "expired", 0)],
      undefined,
      "done done done unknown failed",
    ],
    [
      "a queue that was read too long ago",
      [heard, issued, saw("queue", "current", 2 * MINUTE)],
      undefined,
      "done done done unknown unknown",
    ],
  ])("DRIFT-06 with %s", (_, evidence, incidentBeganAt, expected) => {
    expect(states(evidence, incidentBeganAt).join(" ")).toBe(expected);
  });

  it("DRIFT-06 never calls anything done without evidence that it names, and forgets it when that is too old", () => {
    const all = [heard, silent, issued, done, queue, saw("ca_trust", "match"), saw("queued_tasks", "past_expiry")];
    fc.assert(
      fc.property(fc.subarray(all), fc.integer({ min: 0, max: 3 }), (evidence, hours) => {
        const later = { policy, now: now + hours * 24 * HOUR, incidentBeganAt: undefined };
        for (const { state, evidence: id } of checklistOf(evidence, later)) {
          expect(recoveryCheckStates).toContain(state);
          if (state !== "unknown") expect(evidence.map((one) => one.id)).toContain(id);
          if (hours > 0) expect(state).not.toBe("done");
        }
      }),
    );
  });
});
