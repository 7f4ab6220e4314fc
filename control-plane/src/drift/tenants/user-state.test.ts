import { causeLayers } from "@holdfast/contracts/endpoints/drift";
import { severities, type UserState, userStates } from "@holdfast/contracts/reasons/vocabulary";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Affecting,
  type OwnEvidence,
  type OwnKind,
  tenantPolicy as policy,
  userStateOf,
} from "./user-state.ts";

const now = Date.parse("2026-03-01T03:00:00Z");
const [OWN, OTHER] = ["own-allocation", "another-allocation"];

const seen = (kind: OwnKind, value: string, ageMs = 1_000): OwnEvidence => ({
  kind,
  value,
  observedAt: now - ageMs,
});
const shell = (ageMs?: number) => seen("terminal", "ready", ageMs);
const app = (ageMs?: number) => [seen("app_status", "running", ageMs), seen("app_endpoint", "succeeded", ageMs)];

const cause = (over: Partial<Affecting> = {}): Affecting => ({
  ...{ layer: "management", severity: "P2", userState: "temporary" },
  evidence: [{ kind: "heartbeat", observedAt: now - 130_000 }],
  ...over,
});
const assess = (causes: readonly Affecting[], evidence: readonly OwnEvidence[] = []) =>
  userStateOf(causes, { id: OWN, evidence }, policy, now);

describe("the user state of an allocation", () => {
  it("DRIFT-03 is normal without causes, and otherwise the worst of theirs", () => {
    expect(assess([])).toEqual({ state: "normal", reviewAt: undefined });
    for (const a of userStates) {
      for (const b of userStates) {
        const worst = userStates[Math.max(userStates.indexOf(a), userStates.indexOf(b))];
        expect(assess([cause({ userState: a }), cause({ userState: b })]).state, `${a} ${b}`).toBe(worst);
      }
    }
  });

  it("DRIFT-05 with a working terminal or app is normal, for every layer, severity and state but those that stand", () => {
    for (const evidence of [[shell()], app()]) {
      for (const layer of causeLayers) {
        for (const severity of severities) {
          for (const userState of userStates) {
            const stands = severity === "P0" || userState === "security_action_required";
            const { state } = assess([cause({ layer, severity, userState })], evidence);
            expect(state, `${layer} ${severity} ${userState}`).toBe(stands ? userState : "normal");
          }
        }
      }
    }
  });

  it("DRIFT-05 rests on the allocation's own evidence only while that is fresh, and says until when", () => {
    const { terminal } = policy.worksForMs;
    expect(assess([cause()], [shell(terminal - 1)])).toEqual({ state: "normal", reviewAt: now + 1 });
    expect(assess([cause()], [shell(terminal)])).toEqual({ state: "temporary", reviewAt: undefined });
    expect(assess([cause({ severity: "P0" })], [shell()]).reviewAt, "it changes nothing").toBeUndefined();
  });

  it("DRIFT-05 of an app needs both: that it runs, and that it is reached", () => {
    const [running, reached] = app();
    for (const half of [running, reached]) expect(assess([cause()], half ? [half] : []).state).toBe("temporary");
    expect(assess([cause()], app()).state).toBe("normal");
    expect(assess([cause()], [shell(), seen("app_status", "stopped")]).state).toBe("temporary");
    expect(assess([cause()], [shell(), seen("terminal", "terminal_pty_failed", 500)]).state).toBe("temporary");
    expect(assess([cause()], [shell(500), seen("terminal", "terminal_pty_failed")]).state).toBe("normal");
  });

  it("DRIFT-05 follows what was seen last where the way to the workload, or the workload, failed", () => {
    const failed = (ageMs: number) =>
      cause({ layer: "access", evidence: [{ kind: "terminal", observedAt: now - ageMs }] });
    expect(assess([failed(30_000)], [shell(10_000)]).state).toBe("normal");
    expect(assess([failed(5_000)], [shell(10_000)]).state).toBe("temporary");
  });

  it("DRIFT-10 is not touched by what happened to another tenant's allocation", () => {
    const ofOther = { kind: "terminal", key: OTHER, observedAt: now };
    const named = { kind: "diagnostic", observedAt: now, detail: { allocation_id: OTHER } };
    for (const evidence of [[ofOther], [named], [ofOther, { kind: "heartbeat", observedAt: now }]]) {
      expect(assess([cause({ layer: "workload", userState: "operator_action_required", evidence })]).state).toBe(
        "normal",
      );
    }
    expect(assess([cause({ evidence: [ofOther, { ...ofOther, key: OWN }] })]).state).toBe("temporary");
    expect(assess([cause({ evidence: [{ ...ofOther, kind: "finding" }] })]).state, "a key of another sort").toBe(
      "temporary",
    );
  });

  const times = fc.integer({ min: -5_000, max: 1_200_000 });
  const anyCause: fc.Arbitrary<Affecting> = fc.record({
    layer: fc.constantFrom(...causeLayers),
    severity: fc.constantFrom(...severities),
    userState: fc.constantFrom(...userStates),
    evidence: fc.array(
      fc.record({
        kind: fc.constantFrom("heartbeat", "terminal", "app_status"),
        key: fc.constantFrom(undefined, OWN, OTHER),
        observedAt: times.map((age) => now - age),
      }),
      { minLength: 1, maxLength: 3 },
    ),
  });
  const anyEvidence = fc.record({
    kind: fc.constantFrom<OwnKind>("terminal", "app_status", "app_endpoint"),
    value: fc.constantFrom("ready", "running", "succeeded", "stopped", "terminal_pty_failed"),
    observedAt: times.map((age) => now - age),
  });

  it("DRIFT-03 holds its rules over any causes and evidence", () => {
    const rank = (state: UserState) => userStates.indexOf(state);
    fc.assert(
      fc.property(fc.array(anyCause, { maxLength: 4 }), fc.array(anyEvidence, { maxLength: 5 }), (causes, own) => {
        const { state, reviewAt } = assess(causes, own);
        expect(assess(causes.toReversed(), own.toReversed()).state, "order").toBe(state);
        const without = assess(causes).state;
        expect(rank(state), "own evidence only ever improves it").toBeLessThanOrEqual(rank(without));
        const ours = causes.filter((one) => assess([one]).state === one.userState);
        for (const one of ours.filter(({ severity }) => severity === "P0")) {
          expect(rank(state)).toBeGreaterThanOrEqual(rank(one.userState));
        }
        if (without === "security_action_required") expect(state).toBe(without);
        if (reviewAt === undefined) return;
        expect(reviewAt).toBeGreaterThan(now);
        const before = userStateOf(causes, { id: OWN, evidence: own }, policy, reviewAt - 1).state;
        expect(rank(before), "until then time alone makes nothing worse").toBeLessThanOrEqual(rank(state));
      }),
      { numRuns: 20_000 },
    );
  });
});
