import { leaseStates } from "@holdfast/contracts/endpoints/leases";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type BuildLease, decideProgress, type ProgressingBuild, type ReportedNode } from "./decide-progress.ts";

const NOW = 1_000_000;
const limits = { connectSeconds: 240, graceSeconds: 60, startSeconds: 30 };
const ago = (seconds: number) => NOW - seconds * 1000;
const build = (status: ProgressingBuild["status"], changes: Partial<ProgressingBuild> = {}): ProgressingBuild => ({
  ...{ status, lostAt: undefined, leftAt: undefined },
  ...changes,
});
const node = (changes: Partial<NonNullable<ReportedNode>> = {}): NonNullable<ReportedNode> => ({
  ...{ offline: false, heldOffline: false, busy: false, buildUrl: undefined },
  ...changes,
});
const held = { offline: true, heldOffline: true };
const living: BuildLease = { status: "connected", startedAt: ago(10) };

const decide = (one: ProgressingBuild, seen: { lease?: BuildLease; node?: ReportedNode; isQueued?: boolean }) =>
  decideProgress(one, { lease: living, node: node(), isQueued: true, ...seen }, limits, NOW);

describe("what becomes of a build", () => {
  it.for([
    ["claimed and queued", build("claimed"), {}, {}],
    ["claimed and gone", build("claimed"), { isQueued: false }, { event: "item_gone" }],
    [
      "its lease ended",
      build("launching"),
      { lease: { status: "failed", startedAt: undefined } },
      { event: "lease_ended" },
    ],
    ["its lease is gone", build("building"), { lease: undefined }, { event: "lease_ended" }],
    [
      "its VM is going",
      build("building"),
      { lease: { status: "terminating", startedAt: 0 } },
      { event: "lease_ended" },
    ],
    ["its node is gone", build("building"), { node: undefined }, { event: "node_missing" }],
    ["its agent connects", build("launching"), {}, { event: "agent_connected" }],
    ["its agent is late", build("launching"), { node: node({ offline: true }) }, {}],
    [
      "its agent is too late",
      build("launching"),
      { node: node({ offline: true }), lease: { status: "connected", startedAt: ago(240) } },
      { event: "never_connected" },
    ],
    [
      "it waits for a host",
      build("launching"),
      { node: node({ offline: true }), lease: { status: "requested", startedAt: undefined } },
      {},
    ],
    [
      "it starts",
      build("connected"),
      { node: node({ busy: true }), isQueued: false },
      { event: "build_started", action: "hold_offline" },
    ],
    [
      "it started at once",
      build("launching"),
      { node: node({ busy: true, ...held }) },
      { event: "build_started" },
    ],
    ["it runs", build("building"), { node: node({ busy: true, ...held }), isQueued: false }, {}],
    [
      "it runs on a node that takes more",
      build("building"),
      { node: node({ busy: true }) },
      { action: "hold_offline" },
    ],
    ["it ended, and its node takes more", build("building"), {}, { action: "hold_offline" }],
    ["it ended", build("building"), { node: node(held) }, { event: "build_ended" }],
    [
      "its agent is gone, and the build too",
      build("building"),
      { node: node({ offline: true }) },
      { event: "disconnected" },
    ],
    [
      "its build waits for the agent",
      build("building"),
      { node: node({ offline: true, busy: true }) },
      { event: "agent_lost" },
    ],
    [
      "its build waited for the agent for too long",
      build("building", { lostAt: ago(60) }),
      { node: node({ offline: true, busy: true }) },
      { event: "disconnected" },
    ],
    ["its agent is away", build("connected"), { node: node({ offline: true }) }, { event: "agent_lost" }],
    ["its agent is still away", build("connected", { lostAt: ago(59) }), { node: node({ offline: true }) }, {}],
    [
      "its agent was away too long",
      build("connected", { lostAt: ago(60) }),
      { node: node({ offline: true }) },
      { event: "disconnected" },
    ],
    ["its agent is back", build("connected", { lostAt: ago(50) }), {}, { event: "agent_returned" }],
    ["its item left the queue", build("connected"), { isQueued: false }, { event: "item_left" }],
    ["its item left a moment ago", build("connected", { leftAt: ago(29) }), { isQueued: false }, {}],
    [
      "its item left long ago",
      build("connected", { leftAt: ago(30) }),
      { isQueued: false },
      { action: "hold_offline" },
    ],
    [
      "and takes no build",
      build("connected", { leftAt: ago(30) }),
      { isQueued: false, node: node(held) },
      { event: "item_gone" },
    ],
    ["removing", build("removing"), { node: undefined, lease: undefined }, {}],
  ] as const)("VM-06 %s", ([, one, seen, expected]) => {
    expect(decide(one, seen)).toEqual(expected);
  });

  it("VM-06 never ends a build that runs, as long as its VM, its node and its agent exist", () => {
    const any = fc.record({
      status: fc.constantFrom("launching" as const, "connected" as const, "building" as const),
      lostAt: fc.option(fc.integer({ min: 0, max: NOW }), { nil: undefined }),
      leftAt: fc.option(fc.integer({ min: 0, max: NOW }), { nil: undefined }),
    });
    fc.assert(
      fc.property(any, fc.boolean(), fc.boolean(), (one, heldOffline, isQueued) => {
        const { event } = decide(one, { node: node({ busy: true, heldOffline, offline: heldOffline }), isQueued });
        expect(["build_started", "agent_returned", undefined]).toContain(event);
      }),
    );
  });

  it("VM-06 removes an idle node only while it takes no build", () => {
    const any = fc.record({
      status: fc.constantFrom("launching" as const, "connected" as const, "building" as const),
      lostAt: fc.option(fc.integer({ min: 0, max: NOW }), { nil: undefined }),
      leftAt: fc.option(fc.integer({ min: 0, max: NOW }), { nil: undefined }),
    });
    const states = fc.constantFrom(...leaseStates.slice(0, 5));
    fc.assert(
      fc.property(any, states, fc.boolean(), (one, status, isQueued) => {
        const { event } = decide(one, { lease: { status, startedAt: 0 }, isQueued });
        expect(["build_ended", "item_gone", "disconnected", "never_connected"]).not.toContain(event);
      }),
    );
  });
});
