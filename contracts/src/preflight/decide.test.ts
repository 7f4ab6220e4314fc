// Every single failure in both scopes, every pair of them, and random runs: which hop is next, which is named as the cause.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { reasonCodes } from "../reasons/catalogue.ts";
import { ownerIds } from "../reasons/owners.ts";
import { checkOf, PREFLIGHT_WITHIN_MS, type PreflightHop, preflightChecks, preflightHops } from "./checks.ts";
import { completed, conclude, isRequested, nextHop, type Outcome, type Plan } from "./decide.ts";
import { describeFailure } from "./failure.ts";

const failed = { status: "failed", code: "agent_down" } as const;
const unknown = { status: "not_run", why: "no_evidence" } as const;

/** Makes the checks that are due, with the given outcomes; all others pass. */
function run(plan: Plan, outcomes: Partial<Record<PreflightHop, Outcome>>) {
  const made = new Map<PreflightHop, Outcome>();
  for (let hop = nextHop(plan, made); hop; hop = nextHop(plan, made)) {
    expect(made.has(hop)).toBe(false);
    made.set(hop, outcomes[hop] ?? { status: "passed" });
  }
  return { made, ...conclude(plan, made) };
}

const scopes = ["node", "allocation"] as const;
const investigated = [
  "node_readiness",
  "node_recovery_status",
  "node_runtime_api_reachability",
  "node_terminal_reachability",
];

describe("the order of a preflight", () => {
  it("PRE-02 is fixed, and has the names of the runbook", () => {
    expect(preflightHops).toEqual([
      ...["allocation_binding", "node_heartbeat", "node_readiness", "node_recovery_status"],
      ...["node_runtime_api_reachability", "node_task_round_trip", "terminal_token_mint", "terminal_public_route"],
      ...["browser_terminal_ws", "terminal_open_task", "node_terminal_reachability", "gateway_node_stream"],
      ...["terminal_ready_frame", "workload_terminal_startup_failure"],
    ]);
    expect(preflightChecks.filter((one) => "symptom" in one).map(({ hop }) => hop)).toEqual([
      "node_heartbeat",
      "terminal_open_task",
    ]);
    expect(preflightChecks.filter((one) => "causeOfSymptom" in one).map(({ hop }) => hop)).toEqual(investigated);
    for (const { withinMs } of preflightChecks) expect(withinMs).toBeLessThan(PREFLIGHT_WITHIN_MS);
  });

  it.for(scopes)("PRE-01 is run to its end when all passes, for a scope of %s", (scope) => {
    const { made, result, failed_hop } = run({ scope, all: false }, {});
    expect([...made.keys()]).toEqual(preflightHops.filter((hop) => isRequested(hop, scope)));
    expect({ result, failed_hop }).toEqual({ result: "ready", failed_hop: null });
  });

  it("PRE-01 leaves an allocation's hops out without an allocation", () => {
    const all = completed({ scope: "node" }, run({ scope: "node", all: true }, {}).made);
    expect([...all].filter(([, outcome]) => outcome.status === "not_run").map(([hop]) => hop)).toEqual(
      preflightHops.filter((hop) => checkOf(hop).needs === "allocation"),
    );
    expect(all.get("terminal_token_mint")).toEqual({ status: "not_run", why: "not_requested" });
  });
});

describe("a failed hop", () => {
  it.for(preflightHops)("PRE-01 %s is the one that is named, and ends the run", (hop) => {
    const { made, result, failed_hop, symptom_hop } = run({ scope: "allocation", all: false }, { [hop]: failed });
    expect({ result, failed_hop, symptom_hop }).toEqual({ result: "failed", failed_hop: hop, symptom_hop: null });
    const after = preflightHops.slice(preflightHops.indexOf(hop) + 1);
    const goneOn = after.filter((one) => made.has(one));
    expect(goneOn).toEqual(checkOf(hop).symptom ? after.filter((one) => investigated.includes(one)) : []);
    const all = completed({ scope: "allocation" }, made);
    for (const one of after.filter((other) => !made.has(other)))
      expect(all.get(one)).toEqual({ status: "not_run", why: "after_failure" });
  });

  it.for(preflightHops.flatMap((first) => preflightHops.map((second) => [first, second] as const)))(
    "PRE-01 %s with %s: the cause is named, the symptom only without one",
    ([first, second]) => {
      const broken = { [first]: failed, [second]: failed };
      const earliest = preflightHops.find((hop) => hop in broken) as PreflightHop;
      const latest = earliest === first ? second : first;
      const explains = checkOf(earliest).symptom === true && investigated.includes(latest);
      const expected = explains ? latest : earliest;
      for (const all of [false, true]) {
        const { failed_hop, symptom_hop, made } = run({ scope: "allocation", all }, broken);
        expect(failed_hop).toBe(expected);
        expect(symptom_hop).toBe(expected === earliest ? null : earliest);
        if (all) expect(made.size).toBe(preflightHops.length);
      }
    },
  );

  it("PRE-01 found as a cause ends the search", () => {
    const { made } = run(
      { scope: "node", all: false },
      { node_heartbeat: failed, node_recovery_status: failed, node_terminal_reachability: failed },
    );
    expect([...made.keys()]).toEqual(["node_heartbeat", "node_readiness", "node_recovery_status"]);
  });

  it("PRE-01 what could not be checked is neither passed nor a cause", () => {
    const blind = { node_readiness: unknown, node_recovery_status: unknown };
    expect(run({ scope: "node", all: false }, blind).result).toBe("incomplete");
    const { failed_hop } = run({ scope: "node", all: false }, { ...blind, node_heartbeat: failed });
    expect(failed_hop).toBe("node_heartbeat");
  });
});

describe("any run", () => {
  const outcome = fc.constantFrom<Outcome>({ status: "passed" }, failed, unknown);
  const anyRun = fc.record({
    scope: fc.constantFrom(...scopes),
    all: fc.boolean(),
    outcomes: fc.array(outcome, { minLength: preflightHops.length, maxLength: preflightHops.length }),
  });

  it("PRE-01 ends, keeps the order, and names a hop that was seen to fail", () => {
    fc.assert(
      fc.property(anyRun, ({ scope, all, outcomes }) => {
        const byHop = Object.fromEntries(preflightHops.map((hop, index) => [hop, outcomes[index] as Outcome]));
        const { made, result, failed_hop, symptom_hop } = run({ scope, all }, byHop);
        const order = [...made.keys()].map((hop) => preflightHops.indexOf(hop));
        expect(order).toEqual(order.toSorted((a, b) => a - b));
        const failures = [...made].filter(([, { status }]) => status === "failed").map(([hop]) => hop);
        expect(result === "failed").toBe(failures.length > 0);
        expect(failed_hop === null).toBe(failures.length === 0);
        if (failed_hop) expect(failures).toContain(failed_hop);
        if (symptom_hop)
          expect(checkOf(symptom_hop).symptom && checkOf(failed_hop as PreflightHop).causeOfSymptom).toBe(true);
        if (!all) expect(failures.filter((hop) => !checkOf(hop).symptom).length).toBeLessThanOrEqual(1);
        expect(result === "ready").toBe(
          preflightHops.every((hop) => !isRequested(hop, scope) || made.get(hop)?.status === "passed"),
        );
        expect([...completed({ scope }, made).keys()]).toEqual(preflightHops);
      }),
      { numRuns: 5_000 },
    );
  });
});

describe("a failure's words", () => {
  it.for(reasonCodes)("PRE-02 %s has a signal, an owner of the matrix and a recovery", (code) => {
    const { signal, owner, recovery } = describeFailure(code, "01a1e13c-bc3d-71c5-9b58-aada3c2346d4");
    expect(signal).toMatch(/^[a-z0-9_]+$/);
    if (owner !== null) expect(ownerIds).toContain(owner);
    expect(recovery).not.toContain("<id>");
    expect(recovery.length).toBeGreaterThan(0);
  });
});
