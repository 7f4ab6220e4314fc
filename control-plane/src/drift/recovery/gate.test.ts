import { recoveryChecks } from "@holdfast/contracts/endpoints/drift";
import { reasonCodes } from "@holdfast/contracts/reasons/catalogue";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { classify } from "../classify/classify.ts";
import type { Kind, Observation, Values } from "../evidence/observation.ts";
import { defaultPolicy as policy } from "../policy.ts";
import { layersOf } from "../verdicts/layers.ts";
import { messageOf } from "../verdicts/message.ts";
import { gate, isChecking, type OpenIncident, proofNeededAfter } from "./gate.ts";
import { needsProof } from "./needs-proof.ts";
import { isDue, MOST_ATTEMPTS } from "./run-checks.ts";

const now = Date.parse("2030-01-01T12:00:00Z");
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

function saw<K extends Kind>(
  kind: K,
  value: Values[K],
  ageMs: number,
  detail?: Observation["detail"],
): Observation {
  const at = now - ageMs;
  const common = { id: `${kind} ${value}`, kind, value, observer: "agent", observedAt: at, receivedAt: at };
  return { ...common, detail } as Observation;
}

const REPAIRED = MINUTE;
const validity = { not_before: now - HOUR, not_after: now + 20 * HOUR };
const issued = (ageMs = REPAIRED, issued_for = "enrollment") =>
  saw("certificate", "issued", ageMs, { ...validity, serial: "a1", issued_for });
const heartbeat = (ageMs: number, { instance = "one", serial = "a1" } = {}) =>
  saw("heartbeat", "received", ageMs, { instance_id: instance, serial });
const task = (ageMs: number, instance: string | null = "one") =>
  saw("task", "completed", ageMs, { instance_id: instance });
const queue = saw("queue", "current", 0);
const active = saw("standing", "active", 20 * MINUTE);

const expired: OpenIncident = {
  proofAfter: null,
  openedAt: null,
  causes: [{ reason: "cert_expired", observed: [] }],
};
const seenAt = (reason: string, ageMs: number): OpenIncident => ({
  ...{ proofAfter: null, openedAt: null },
  causes: [
    { reason, observed: [{ kind: "refusal", value: "cert_expired", observedAt: now - ageMs, detail: undefined }] },
  ],
});
const was = seenAt("cert_expired", 2 * MINUTE);

function judged(evidence: readonly Observation[], incident?: OpenIncident) {
  const gated = gate(classify(evidence, policy, now), { evidence, incident, policy, now });
  return { ...gated, missing: gated.verdict.causes[0]?.missing ?? [] };
}
const whole = [active, issued(), heartbeat(5_000), task(6_000), queue];

describe("the gate of a recovery", () => {
  it("DRIFT-06 lets a node be healthy when all five lines were seen since the repair", () => {
    const { verdict, checklist } = judged(whole, was);
    expect(verdict.causes).toEqual([]);
    expect(verdict.userState).toBe("normal");
    expect(checklist?.map(({ check, state }) => [check, state])).toEqual(
      recoveryChecks.map((one) => [one, "done"]),
    );
  });

  it.each<[string, Observation[], string[]]>([
    [
      "a heartbeat from before",
      [active, issued(), heartbeat(REPAIRED + 1), task(6_000), queue],
      ["heartbeat_current", "certificate_trusted", "task_wait_succeeds"],
    ],
    ["no task", [active, issued(), heartbeat(5_000), queue], ["task_completed"]],
    ["a task from before", [active, issued(), heartbeat(5_000), task(REPAIRED), queue], ["task_completed"]],
    [
      "a task of another instance",
      [active, issued(), heartbeat(5_000), task(6_000, "two"), queue],
      ["task_completed"],
    ],
    [
      "a task of nobody knows whom",
      [active, issued(), heartbeat(5_000), task(6_000, null), queue],
      ["task_completed"],
    ],
    [
      "a heartbeat with another certificate",
      [active, issued(), heartbeat(5_000, { serial: "b2" }), task(6_000), queue],
      ["certificate_trusted"],
    ],
    ["a queue that nobody read", [active, issued(), heartbeat(5_000), task(6_000)], ["no_expired_work"]],
    [
      "expired tasks that are shown as queued",
      [active, issued(), heartbeat(5_000), task(6_000), saw("queue", "expired", 0)],
      ["no_expired_work"],
    ],
    [
      "a reactivation after all that",
      [saw("standing", "active", 1_000), issued(), heartbeat(5_000), task(6_000), queue],
      recoveryChecks.filter((check) => check !== "no_expired_work"),
    ],
  ])("DRIFT-06 keeps a node in recovery with %s", (_, evidence, missing) => {
    const { verdict, missing: found } = judged(evidence, was);
    expect(found).toEqual(missing);
    expect(verdict).toMatchObject({ userState: "recovering", causes: [{ reason: "recovery_unverified" }] });
    expect(isChecking(verdict.causes)).toBe(true);
    expect(layersOf(verdict, evidence, now).management).toBe("recovering");
  });

  it("DRIFT-06 needs proof of an identity that the node got in the course of any incident", () => {
    const away = (ageMs: number): OpenIncident => ({
      ...{ proofAfter: null, openedAt: now - ageMs, causes: [{ reason: "agent_down", observed: [] }] },
    });
    const unproved = [active, issued(REPAIRED, "recovery"), heartbeat(5_000), queue];
    expect(judged(unproved, away(2 * MINUTE))).toMatchObject({
      ...{ missing: ["task_completed"], proofAfter: now - REPAIRED },
    });
    expect(judged([...unproved, task(6_000)], away(2 * MINUTE)).verdict.causes).toEqual([]);
    // It was issued before, or is a renewal.
    expect(judged(unproved, away(REPAIRED / 2))).toMatchObject({ missing: [], proofAfter: undefined });
    const renewed = [active, issued(REPAIRED, "renewal"), heartbeat(5_000), queue];
    expect(judged(renewed, away(2 * MINUTE))).toMatchObject({ missing: [], proofAfter: undefined });
  });

  it("DRIFT-06 names what is missing in words", () => {
    const [cause] = judged([active, issued(), heartbeat(5_000), queue], was).verdict.causes;
    expect(cause && messageOf(cause, now)).toMatch(/Not seen yet: A task completed\.$/);
    expect(cause?.severity).toBe("P2");
  });

  it("DRIFT-06 asks nothing of a node without an incident, after a short outage, or that is retired", () => {
    const alone = [active, issued(), heartbeat(5_000)];
    expect(judged(alone)).toMatchObject({ proofAfter: undefined, checklist: undefined, verdict: { causes: [] } });
    expect(judged(alone, seenAt("agent_down", MINUTE)).verdict.causes).toEqual([]);
    expect(judged(alone, seenAt("edge_rate_limited", MINUTE)).verdict.causes).toEqual([]);
    const retired = [saw("standing", "retired", MINUTE), issued()];
    expect(judged(retired, was).verdict.causes).toEqual([]);
  });

  it("DRIFT-06 remembers a cause that needs proof when others followed it", () => {
    const later: OpenIncident = {
      proofAfter: now - 2 * MINUTE,
      openedAt: null,
      causes: [{ reason: "agent_down" }],
    };
    expect(judged([active, issued(), heartbeat(5_000), queue], later).missing).toEqual(["task_completed"]);
  });

  it("DRIFT-06 counts an enrollment, not a renewal, as a repair", () => {
    const since = (one: Observation) => proofNeededAfter(was, [one]);
    expect(since(issued(MINUTE))).toBe(now - MINUTE);
    expect(since(issued(MINUTE, "renewal"))).toBe(now - 2 * MINUTE);
    expect(since({ ...saw("ca_trust", "match", 0), firstAt: now - MINUTE })).toBe(now - MINUTE);
    expect(since(saw("ca_trust", "mismatch", 0))).toBe(now - 2 * MINUTE);
    expect(proofNeededAfter(expired, [])).toBeUndefined();
  });

  it("DRIFT-06 never changes a verdict with a cause, and never adds one without an incident", () => {
    const all = [
      ...whole,
      saw("refusal", "identity_revoked", 1_000),
      saw("finding", "present", 1_000),
      heartbeat(HOUR),
    ];
    fc.assert(
      fc.property(fc.subarray(all), fc.constantFrom(undefined, was, expired), (evidence, incident) => {
        const found = classify(evidence, policy, now);
        const { verdict, checklist } = gate(found, { evidence, incident, policy, now });
        if (found.causes.length > 0 || !incident) {
          expect(verdict).toEqual(found);
          return;
        }
        const isProved = checklist?.every(({ state }) => state === "done") ?? true;
        expect(verdict.causes.length === 0).toBe(isProved);
      }),
    );
  });
});

describe("a cause that needs proof", () => {
  it("DRIFT-06 is one of identity, trust, addresses or quarantine", () => {
    const expected = [
      ...["auth_failed", "cert_expired", "cert_untrusted_by_ingress", "cloned_identity_detected"],
      ...["endpoint_profile_drift", "identity_key_missing", "identity_retired", "identity_revoked"],
      ...["identity_revoked_or_fenced", "node_agent_api_tls_failed", "node_agent_auth_failed", "node_quarantined"],
      ...["recovery_enrollment_blocked", "recovery_token_missing", "server_tls_untrusted", "trust_bundle_invalid"],
      ...["edge_terminates_tls", "ingress_mtls_rejected", "recovery_refused"],
    ];
    expect(reasonCodes.filter(needsProof).toSorted()).toEqual(expected.toSorted());
    expect(needsProof("a_code_of_a_newer_agent")).toBe(false);
  });
});

describe("a recovery check", () => {
  const at = new Date(now);
  const ended = (secondsAgo: number) => new Date(now - secondsAgo * 1000);
  it.each<[string, Parameters<typeof isDue>[0], boolean]>([
    ["the first one", { made: 0, open: 0, last_ended_at: null, now: at }, true],
    ["one that is under way", { made: 1, open: 1, last_ended_at: null, now: at }, false],
    ["one that just failed", { made: 1, open: 0, last_ended_at: ended(29), now: at }, false],
    ["one that failed a while ago", { made: 1, open: 0, last_ended_at: ended(30), now: at }, true],
    ["a third one, too soon", { made: 2, open: 0, last_ended_at: ended(59), now: at }, false],
    ["a third one", { made: 2, open: 0, last_ended_at: ended(60), now: at }, true],
    ["too many", { made: MOST_ATTEMPTS, open: 0, last_ended_at: ended(100_000), now: at }, false],
  ])("DRIFT-06 is repeated with growing pauses and a limit: %s", (_, attempts, due) => {
    expect(isDue(attempts)).toBe(due);
  });
});
