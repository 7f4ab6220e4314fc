import { terminalFailures } from "@holdfast/contracts/reasons/terminal";
import { readinessSteps } from "@holdfast/contracts/terminal/frames";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { applyEvent, type Lifecycle, type Note, type Observed } from "./lifecycle.ts";
import { hasEnded } from "./state.ts";

const at = (ms: number) => new Date(Date.UTC(2030, 0, 1) + ms).toISOString();
const fresh: Lifecycle = {
  state: "opening",
  chain: { token_ready: at(0) },
  failure: null,
  attached: false,
  attachmentAt: null,
  closedAt: null,
  closeReason: null,
  exit: null,
  bytesIn: null,
  bytesOut: null,
};

function play(events: readonly Observed[], from = fresh): { lifecycle: Lifecycle; notes: Note[] } {
  let lifecycle = from;
  const notes: Note[] = [];
  for (const event of events) {
    const next = applyEvent(lifecycle, event);
    lifecycle = next.lifecycle;
    notes.push(...next.notes);
  }
  return { lifecycle, notes };
}

const ready: Observed = { type: "step", step: "pty_ready", at: at(40) };
const closed: Observed = {
  ...{ type: "closed", at: at(900), reason: "exit", detail: null, exit: { code: 3, signal: null } },
  ...{ bytes_in: 5, bytes_out: 70, correlation_id: "c1" },
};
const failure = (code: string, ended: boolean, ms = 50): Observed => ({
  ...{ type: "failed", at: at(ms), code, detail: "why", ended, correlation_id: "c1" },
});

describe("an event of a terminal", () => {
  it("TERM-08 keeps the first time of each step, and measures from the token to the shell", () => {
    const steps = readinessSteps.map((step, index): Observed => ({ type: "step", step, at: at(10 * index) }));
    const again = steps.map((step): Observed => ({ ...step, at: at(7_000) }));
    const { lifecycle, notes } = play([...steps, ...again]);
    expect(lifecycle.state).toBe("open");
    expect(Object.values(lifecycle.chain)).toEqual([0, 10, 20, 30, 40].map(at));
    expect(notes).toEqual([{ type: "opened", seconds: 0.04 }]);
  });

  it("TERM-05 ends an opening with its failure, and ignores a shell that starts later", () => {
    const { lifecycle, notes } = play([failure("terminal_node_stream_timeout", false), ready, closed]);
    expect(lifecycle).toMatchObject({
      state: "failed",
      closedAt: at(50),
      failure: { code: "terminal_node_stream_timeout" },
    });
    expect(lifecycle.chain.pty_ready).toBeUndefined();
    expect(notes.map(({ type }) => type)).toEqual(["failed"]);
  });

  it("TERM-10 keeps a shell when only its client failed, and ends it when the shell failed too", () => {
    const kept = play([ready, failure("terminal_taken_over", false)]);
    expect(kept.lifecycle).toMatchObject({
      state: "open",
      closedAt: null,
      failure: { code: "terminal_taken_over" },
    });
    const lost = play([failure("terminal_stream_lost", true, 60)], kept.lifecycle);
    expect(lost.lifecycle).toMatchObject({ state: "failed", closeReason: "terminal_stream_lost" });
  });

  it("TERM-10 records how the shell ended, and how many bytes it transferred", () => {
    const { lifecycle, notes } = play([ready, closed]);
    expect(lifecycle).toMatchObject({
      state: "closed",
      closedAt: at(900),
      exit: { code: 3 },
      bytesIn: 5,
      bytesOut: 70,
    });
    expect(notes.at(-1)).toMatchObject({ type: "closed", reason: "exit" });
  });

  it("TERM-10 orders attach and detach events by their times", () => {
    const attach = (ms: number): Observed => ({ type: "attached", at: at(ms), user_key: "user:1" });
    const detach = (ms: number): Observed => ({ type: "detached", at: at(ms) });
    const { lifecycle, notes } = play([
      ready,
      attach(50),
      attach(50),
      detach(60),
      attach(50),
      detach(60),
      attach(60),
    ]);
    expect(lifecycle.attached).toBe(true);
    expect(notes.filter(({ type }) => type === "attached")).toHaveLength(2);
  });

  it("TERM-09 keeps an unknown code of a node in the detail of the failure", () => {
    const { lifecycle } = play([failure("made_up_by_a_node", true)]);
    expect(lifecycle.failure).toEqual({
      code: "terminal_pty_failed",
      detail: "made_up_by_a_node: why",
      at: at(50),
      correlation_id: "c1",
    });
  });

  it("TERM-05 distinguishes a terminal whose token was never used from one that got stuck", () => {
    expect(play([{ type: "unused", at: at(9) }]).lifecycle).toMatchObject({ state: "closed", failure: null });
    const stuck = play([
      { type: "abandoned", at: at(9), code: "terminal_ui_connecting_stuck", correlation_id: "c1" },
    ]);
    expect(stuck.lifecycle).toMatchObject({ state: "failed", failure: { code: "terminal_ui_connecting_stuck" } });
    const open = play([ready, { type: "abandoned", at: at(9), code: "terminal_time_over", correlation_id: "c1" }]);
    expect(open.lifecycle).toMatchObject({ state: "closed", closeReason: "terminal_time_over" });
    const lost = play([
      ready,
      { type: "abandoned", at: at(9), code: "terminal_stream_lost", correlation_id: "c1" },
    ]);
    expect(lost.lifecycle).toMatchObject({ state: "failed", failure: { code: "terminal_stream_lost" } });
  });
});

const time = fc.integer({ min: 0, max: 20 }).map(at);
const anyEvent: fc.Arbitrary<Observed> = fc.oneof(
  fc.record({ type: fc.constant("step" as const), step: fc.constantFrom(...readinessSteps), at: time }),
  fc.record({ type: fc.constant("attached" as const), at: time, user_key: fc.constant("user:1") }),
  fc.record({ type: fc.constant("detached" as const), at: time }),
  fc.record({
    ...{ type: fc.constant("failed" as const), at: time, detail: fc.constant(null), ended: fc.boolean() },
    code: fc.constantFrom("terminal_idle", "terminal_taken_over", "unheard_of"),
    correlation_id: fc.constant("c1"),
  }),
  fc.record({
    type: fc.constant("abandoned" as const),
    at: time,
    code: fc.constantFrom("terminal_time_over" as const, "terminal_stream_lost" as const),
    correlation_id: fc.constant("c1"),
  }),
  fc.record({ type: fc.constant("unused" as const), at: time }),
  fc
    .tuple(time, fc.constantFrom("exit", "detached", "terminal_idle", "terminal_pty_failed", "unheard_of"))
    .map(([when, reason]): Observed => ({ ...closed, at: when, reason })),
);

describe("any events in any order", () => {
  it("TERM-10 an event applied twice in a row is applied once", () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 12 }), anyEvent, (before, event) => {
        const once = applyEvent(play(before).lifecycle, event);
        const twice = applyEvent(once.lifecycle, event);
        expect(twice).toEqual({ lifecycle: once.lifecycle, notes: [] });
      }),
    );
  });

  it("TERM-10 the constraints of the table hold", () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 20 }), (events) => {
        const { lifecycle, notes } = play(events);
        expect(hasEnded(lifecycle.state)).toBe(lifecycle.closedAt !== null);
        if (lifecycle.state === "failed") expect(lifecycle.failure).not.toBeNull();
        if (hasEnded(lifecycle.state)) expect(lifecycle.attached).toBe(false);
        if (lifecycle.failure) expect(Object.keys(terminalFailures)).toContain(lifecycle.failure.code);
        expect(notes.filter(({ type }) => type === "closed").length).toBeLessThanOrEqual(1);
        expect(notes.filter(({ type }) => type === "opened").length).toBeLessThanOrEqual(1);
      }),
    );
  });
});
