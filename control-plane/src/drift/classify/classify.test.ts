import { isReason, reasons } from "@holdfast/contracts/reasons/catalogue";
import { diagnosticReasonNames } from "@holdfast/contracts/reasons/node";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Kind, kinds, type Observation, observedValues, type Values } from "../evidence/observation.ts";
import { defaultPolicy as policy } from "../policy.ts";
import { type Cause, classify } from "./classify.ts";

const now = Date.parse("2026-03-01T03:00:00Z");
const HOUR = 3_600_000;
let count = 0;

function saw<K extends Kind>(kind: K, value: Values[K], over: Partial<Observation> & { ageMs?: number } = {}) {
  const { ageMs = 1_000, ...rest } = over;
  count += 1;
  const at = now - ageMs;
  return {
    ...{ id: `e${count}`, kind, value, observer: "control_plane", observedAt: at, receivedAt: at },
    ...rest,
  } as Observation;
}

const reasonsOf = (evidence: readonly Observation[], at = now) =>
  classify(evidence, policy, at).causes.map(({ reason }) => reason);

/** Where any code is a value: some of each sort, and one that only a newer agent knows. */
const codes: Partial<Record<Kind, readonly string[]>> = {
  diagnostic: [...diagnosticReasonNames, "moon_phase"],
  refusal: ["cert_expired", "certificate_not_yet_valid", "cert_untrusted", "identity_revoked", "moon_phase"],
  started: ["boot-1", "boot-2"],
  host_file: ["missing", "0123"],
  terminal: [
    ...["ready", "terminal_node_stream_timeout", "terminal_pty_failed", "terminal_node_offline", "moon_phase"],
    ...["terminal_env_profile_drift", "terminal_node_stream_mtls_failed"],
  ],
};

const ages = fc.oneof(fc.nat({ max: 300_000 }), fc.integer({ min: -120_000, max: 30 * HOUR }));
const observation = fc
  .record({
    kind: fc.constantFrom(...kinds),
    pick: fc.nat({ max: 1_000 }),
    age: ages,
    number: fc.nat({ max: 200 }),
  })
  .map(({ kind, pick, age, number }): Observation => {
    const all = observedValues[kind] ?? codes[kind] ?? [];
    const at = now - age;
    const keyOf: Partial<Record<Kind, string>> = {
      finding: [...diagnosticReasonNames, "moon_phase"][number % (diagnosticReasonNames.length + 1)] ?? "",
      profile: number % 2 === 0 ? "api" : "terminal",
    };
    return {
      ...{ id: `${kind}-${pick}-${age}-${number}`, kind, value: all[pick % all.length], observer: "agent" },
      ...{ key: keyOf[kind], observedAt: at, receivedAt: at },
      detail: {
        ...{ skew_ms: (number - 100) * 1_000, used_percent: number / 2 },
        ...{ not_before: at, not_after: at + number * 900_000 },
        endpoint: ["node_facing", "public_edge", "other"][number % 3] ?? "",
        issuer: number % 5 === 0 ? "unknown" : "ours",
      },
    } as Observation;
  });
const evidence = fc.array(observation, { maxLength: 14 });

const isRejection = ({ reason }: Cause) => isReason(reason) && reasons[reason].class === "rejection";
const answersOf = (found: readonly Observation[], at: number) =>
  classify(found, policy, at).causes.map(({ evidence: _, since: __, ...answer }) => answer);

describe("the classification", () => {
  it("DRIFT-04 holds its rules over any evidence", () => {
    fc.assert(
      fc.property(evidence, (found) => {
        const { causes, userState } = classify(found, policy, now);
        const named = new Set(causes.map(({ reason }) => reason));
        // One expectation for a case: with one for each rule, they take longer than the classification.
        const broken: string[] = [];
        const hold = (rule: string, holds: boolean) => void (holds || broken.push(rule));
        hold("a reason is named once", named.size === causes.length);
        for (const { reason, evidence: basis, symptoms } of causes) {
          hold(`${reason} has evidence`, basis.length > 0);
          for (const symptom of symptoms) hold(`${symptom} is only a symptom`, !named.has(symptom));
          if (!isReason(reason)) continue;
          for (const other of reasons[reason].dependsOn) hold(`${reason}, not ${other}`, !named.has(other));
        }
        const explained = userState === "normal" || causes.some((cause) => cause.userState === userState);
        hold("the user's state has a cause", explained);
        hold("a wrong clock, not an expired certificate", !named.has("clock_skew") || !named.has("cert_expired"));
        const unreachable = named.has("node_agent_unreachable");
        hold("unreachable, not down", !unreachable || !named.has("agent_down"));
        if (!found.some(({ kind }) => kind.startsWith("app_") || kind === "terminal" || saysTerminal(found))) {
          hold("no workload without a sign of one", !causes.some(({ layer }) => layer === "workload"));
        }
        expect(broken).toEqual([]);
      }),
      { numRuns: 100_000 },
    );
  });

  it("DRIFT-04 does not depend on the order of evidence", () => {
    fc.assert(
      fc.property(evidence, (found) => {
        expect(answersOf(found.toReversed(), now)).toEqual(answersOf(found, now));
      }),
      { numRuns: 5_000 },
    );
  });

  it("DRIFT-04 changes by time alone only when it says so", () => {
    fc.assert(
      fc.property(evidence, fc.double({ min: 0, max: 1, noNaN: true }), (found, share) => {
        const { reviewAt, silentAt } = classify(found, policy, now);
        const until = Math.min(reviewAt ?? now + 100 * HOUR, silentAt ?? now + 100 * HOUR) - 1;
        expect(answersOf(found, Math.floor(now + (until - now) * share))).toEqual(answersOf(found, now));
      }),
      { numRuns: 20_000 },
    );
  });

  it("DRIFT-04 an older observation changes nothing where there is a newer one", () => {
    fc.assert(
      fc.property(evidence, observation, (found, extra) => {
        const newer = found.some(
          ({ kind, key, observedAt }) => kind === extra.kind && key === extra.key && observedAt > extra.observedAt,
        );
        fc.pre(newer);
        expect(answersOf([...found, extra], now)).toEqual(answersOf(found, now));
      }),
      { numRuns: 2_000 },
    );
  });

  it("DRIFT-13 never takes failed SSH or a guest agent for an agent that is down", () => {
    fc.assert(
      fc.property(evidence, (found) => {
        const without = found.filter(({ kind }) => kind !== "ssh" && kind !== "guest_agent");
        const access = ["node_ops_ssh_failed", "node_ops_access_unhealthy"];
        const others = reasonsOf(found).filter((reason) => !access.includes(reason));
        expect(others).toEqual(reasonsOf(without));
      }),
      { numRuns: 10_000 },
    );
  });

  it("DRIFT-04 rate limits, server errors and outages are never identity failures", () => {
    const busy = fc.constantFrom(
      "edge_rate_limited",
      "control_plane_unreachable",
      "task_poll_failed",
      "api_unreachable",
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(busy, ages), { maxLength: 6 }), ages, (records, heardAgo) => {
        const found = [
          saw("standing", "active", { ageMs: 9 * HOUR }),
          saw("heartbeat", "received", { ageMs: heardAgo }),
          ...records.map(([code, ageMs]) => saw("diagnostic", code, { ageMs })),
        ];
        expect(classify(found, policy, now).causes.filter(isRejection)).toEqual([]);
      }),
      { numRuns: 5_000 },
    );
  });
});

const saysTerminal = (found: readonly Observation[]) =>
  found.some(({ value, key }) => value === "terminal_failed" || key === "terminal_failed");

describe("what is said of a node", () => {
  const enrolled = saw("standing", "active", { ageMs: 9 * HOUR });
  const heartbeat = (ageMs: number) => saw("heartbeat", "received", { ageMs });

  it("DRIFT-02 that nothing is known of: no more than that, and not at once", () => {
    expect(classify([enrolled], policy, now).causes).toMatchObject([
      { reason: "node_agent_unreachable", confidence: "low" },
    ]);
    const young = saw("standing", "active", { ageMs: 60_000 });
    expect(reasonsOf([young])).toEqual([]);
    expect(classify([young], policy, now).reviewAt).toBe(young.observedAt + policy.returnExpectedWithinMs + 1);
  });

  it("DRIFT-04 that is silent: first to wait, then to look; never that the process is down", () => {
    const during = classify([enrolled, heartbeat(130_000)], policy, now).causes;
    expect(during).toMatchObject([
      { reason: "agent_down", signal: "node_agent_heartbeat_stale", confidence: "low", nextAction: "wait" },
    ]);
    const later = classify([enrolled, heartbeat(600_000)], policy, now).causes;
    expect(later).toMatchObject([
      {
        reason: "agent_down",
        signal: "node_agent_heartbeat_stale",
        confidence: "low",
        nextAction: "restart_agent",
      },
    ]);
  });

  it("DRIFT-01 whose connection was closed: silent at once, and not while it may come back", () => {
    const closed = (ageMs: number) => saw("connection", "closed", { ageMs });
    expect(reasonsOf([enrolled, heartbeat(40_000), closed(5_000)])).toEqual([]);
    expect(reasonsOf([enrolled, heartbeat(40_000), closed(20_000)])).toEqual(["agent_down"]);
    expect(reasonsOf([enrolled, heartbeat(10_000), closed(20_000)])).toEqual([]);
  });

  it("DRIFT-04 that is back: what its host recorded meanwhile is history", () => {
    const record = saw("diagnostic", "api_unreachable", { ageMs: 100_000, receivedAt: now - 500 });
    expect(reasonsOf([enrolled, heartbeat(1_000), record])).toEqual([]);
    expect(reasonsOf([enrolled, heartbeat(400_000), record])).toEqual(["node_agent_api_unreachable"]);
  });

  it("DRIFT-14 whose identity is rejected at a public edge: first the address", () => {
    const node = [enrolled, heartbeat(HOUR)];
    const atEdge = saw("diagnostic", "edge_terminates_tls", { observer: "host" });
    expect(reasonsOf([...node, atEdge])).toEqual(["endpoint_profile_drift"]);
    const refused = saw("refusal", "certificate_replaced", {
      detail: { endpoint: "node_facing", issuer: "ours" },
    });
    expect(reasonsOf([...node, refused])).toEqual(["node_agent_auth_failed"]);
    // The listener itself knows the certificate that it refused.
    expect(reasonsOf([...node, atEdge, refused])).toEqual(["node_agent_auth_failed"]);
    expect(reasonsOf([...node, atEdge, heartbeat(1_000)])).toEqual([]);
  });

  it("ID-14 that somebody claims to be with a certificate of another CA: nothing by that alone", () => {
    const claim = saw("refusal", "cert_untrusted", { detail: { endpoint: "node_facing", issuer: "unknown" } });
    expect(reasonsOf([enrolled, heartbeat(20_000), claim])).toEqual([]);
    expect(reasonsOf([enrolled, heartbeat(HOUR), claim])).toEqual(["agent_down"]);
  });

  it("ID-02 whose replaced certificate is refused: that, also while its last heartbeat is current", () => {
    const refused = saw("refusal", "identity_revoked", { detail: { endpoint: "node_facing", issuer: "ours" } });
    const hours = { not_before: now - HOUR, not_after: now + 20 * HOUR };
    const issued = (ageMs: number) => saw("certificate", "issued", { ageMs, detail: hours });
    expect(reasonsOf([enrolled, heartbeat(5_000), issued(3_000), refused])).toEqual(["node_agent_auth_failed"]);
    // The node works with its new one: somebody else has the old one.
    expect(reasonsOf([enrolled, heartbeat(5_000), issued(9_000), refused])).toEqual([]);
    expect(reasonsOf([enrolled, heartbeat(500), issued(3_000), refused])).toEqual([]);
  });

  it.each([
    ["heartbeat_stale", [heartbeat(130_000)]],
    ["connection_lost", [heartbeat(40_000), saw("connection", "closed", { ageMs: 20_000 })]],
    ["never_heard", []],
    ["api_name_unresolved", [heartbeat(HOUR), saw("diagnostic", "api_name_unresolved")]],
    ["task_result_failed", [heartbeat(1_000), saw("finding", "present", { key: "task_result_failed" })]],
    [
      "terminal_gateway_unreachable",
      [heartbeat(1), saw("finding", "present", { key: "terminal_gateway_unreachable" })],
    ],
    ["clock_skew", [heartbeat(1_000), saw("clock", "measured", { detail: { skew_ms: 90_000 } })]],
    ["disk_full", [heartbeat(1_000), saw("disk", "measured", { detail: { used_percent: 99 } })]],
    [
      "auth_failed",
      [heartbeat(HOUR), saw("refusal", "identity_revoked", { detail: { endpoint: "node_facing" } })],
    ],
    [
      "recovery_token_missing",
      [heartbeat(HOUR), saw("diagnostic", "cert_expired"), saw("recovery_token", "missing")],
    ],
    ["node_quarantined", [heartbeat(1_000), saw("standing", "quarantined", { ageMs: 500 })]],
  ])("AGENT-06 is told in the words of what was observed: %s", (code, found) => {
    expect(classify([enrolled, ...found], policy, now).causes.map(({ spokenAs }) => spokenAs)).toEqual([code]);
  });

  it("DRIFT-15 by an agent that is newer than this server: the agent's own code", () => {
    const finding = saw("finding", "present", { key: "moon_phase" });
    expect(classify([enrolled, heartbeat(1_000), finding], policy, now).causes).toMatchObject([
      { reason: "moon_phase", severity: "P2", owner: "node_runtime", confidence: "high" },
    ]);
  });

  it("DRIFT-04 that filled its disk and fell silent: the disk, less certainly", () => {
    const finding = saw("finding", "present", { key: "disk_full", ageMs: 300_000 });
    expect(classify([enrolled, heartbeat(300_000), finding], policy, now).causes).toMatchObject([
      { reason: "disk_full", confidence: "medium", symptoms: ["agent_down"] },
    ]);
  });

  it("DRIFT-13 whose disk is full although its agent calls it nearly full: full, by what was measured", () => {
    const finding = saw("finding", "present", { key: "node_observability_disk_pressure" });
    const disk = (used_percent: number, pressure_percent?: number) =>
      saw("disk", "measured", { detail: { used_percent, ...(pressure_percent ? { pressure_percent } : {}) } });
    const node = [enrolled, heartbeat(1_000)];
    expect(reasonsOf([...node, finding, disk(99)])).toEqual(["disk_full"]);
    expect(reasonsOf([...node, finding, disk(97)])).toEqual(["node_observability_disk_pressure"]);
    expect(reasonsOf([...node, disk(89)])).toEqual([]);
    expect(reasonsOf([...node, disk(90)])).toEqual(["node_observability_disk_pressure"]);
    // The limit of the host counts, if it has one.
    expect(reasonsOf([...node, disk(94, 95)])).toEqual([]);
    expect(reasonsOf([...node, disk(95, 95)])).toEqual(["node_observability_disk_pressure"]);
  });

  it("DRIFT-07 whose addresses matched before it fell silent: that is not known any more", () => {
    const matched = saw("profile", "matches", { key: "api", ageMs: 400_000 });
    const record = saw("diagnostic", "endpoint_profile_drift", { ageMs: 1_000 });
    expect(reasonsOf([enrolled, heartbeat(400_000), matched])).toEqual(["agent_down"]);
    expect(reasonsOf([enrolled, heartbeat(400_000), matched, record])).toEqual(["endpoint_profile_drift"]);
    const differed = saw("profile", "differs", { key: "api", ageMs: 400_000 });
    const causes = (ageMs: number) => classify([enrolled, heartbeat(ageMs), differed], policy, now).causes;
    expect(causes(1_000)).toMatchObject([{ reason: "endpoint_profile_drift", confidence: "high" }]);
    expect(causes(400_000)).toMatchObject([{ reason: "endpoint_profile_drift", confidence: "medium" }]);
  });

  it("DRIFT-15 that is retired: nothing, unless it still knocks", () => {
    const retired = saw("standing", "retired");
    expect(reasonsOf([retired, heartbeat(9 * HOUR)])).toEqual([]);
    const knock = saw("refusal", "identity_revoked", { detail: { endpoint: "node_facing", issuer: "ours" } });
    expect(reasonsOf([retired, heartbeat(9 * HOUR), knock])).toEqual(["identity_revoked_or_fenced"]);
  });
});
