import { terminalFailures } from "@holdfast/contracts/reasons/terminal";
import { readinessSteps } from "@holdfast/contracts/terminal-frames";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { after, type Life, type Note, type Observed } from "./life.ts";
import { hasEnded } from "./state.ts";

const at = (ms: number) => new Date(Date.UTC(2030, 0, 1) + ms).toISOString();
const fresh: Life = {
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

function play(events: readonly Observed[], from = fresh): { life: Life; notes: Note[] } {
  let life = from;
  const notes: Note[] = [];
  for (const event of events) {
    const next = after(life, event);
    life = next.life;
    notes.push(...next.notes);
  }
  return { life, notes };
}

const ready: Observed = { type: "step", step: "pty_ready", at: at(40) };
const closed: Observed = {
  ...{ type: "closed", at: at(900), reason: "exit", detail: null, exit: { code: 3, signal: null } },
  ...{ bytes_in: 5, bytes_out: 70, correlation_id: "c1" },
};
const failure = (code: string, ended: boolean, ms = 50): Observed => ({
  ...{ type: "failed", at: at(ms), code, detail: "why", ended, correlation_id: "c1" },
});

describe("what an event makes of a terminal", () => {
  it("TERM-08 keeps the first time of each step, and measures from the token to the shell", () => {
    const steps = readinessSteps.map((step, index): Observed => ({ type: "step", step, at: at(10 * index) }));
    const again = steps.map((step): Observed => ({ ...step, at: at(7_000) }));
    const { life, notes } = play([...steps, ...again]);
    expect(life.state).toBe("open");
    expect(Object.values(life.chain)).toEqual([0, 10, 20, 30, 40].map(at));
    expect(notes).toEqual([{ type: "opened", seconds: 0.04 }]);
  });

  it("TERM-05 ends an opening with its failure, and takes no shell that comes after", () => {
    const { life, notes } = play([failure("terminal_node_stream_timeout", false), ready, closed]);
    expect(life).toMatchObject({
      state: "failed",
      closedAt: at(50),
      failure: { code: "terminal_node_stream_timeout" },
    });
    expect(life.chain.pty_ready).toBeUndefined();
    expect(notes.map(({ type }) => type)).toEqual(["failed"]);
  });

  it("TERM-10 keeps a shell whose client had a failure, and ends it with one that took it along", () => {
    const kept = play([ready, failure("terminal_taken_over", false)]);
    expect(kept.life).toMatchObject({ state: "open", closedAt: null, failure: { code: "terminal_taken_over" } });
    const lost = play([failure("terminal_stream_lost", true, 60)], kept.life);
    expect(lost.life).toMatchObject({ state: "failed", closeReason: "terminal_stream_lost" });
  });

  it("TERM-10 knows how the shell ended, and how much went through", () => {
    const { life, notes } = play([ready, closed]);
    expect(life).toMatchObject({
      state: "closed",
      closedAt: at(900),
      exit: { code: 3 },
      bytesIn: 5,
      bytesOut: 70,
    });
    expect(notes.at(-1)).toMatchObject({ type: "closed", reason: "exit" });
  });

  it("TERM-10 follows attaching and detaching by their times", () => {
    const attach = (ms: number): Observed => ({ type: "attached", at: at(ms), user_key: "user:1" });
    const detach = (ms: number): Observed => ({ type: "detached", at: at(ms) });
    const { life, notes } = play([ready, attach(50), attach(50), detach(60), attach(50), detach(60), attach(60)]);
    expect(life.attached).toBe(true);
    expect(notes.filter(({ type }) => type === "attached")).toHaveLength(2);
  });

  it("TERM-09 keeps a code that nobody knows in words, where the node's own words belong", () => {
    const { life } = play([failure("made_up_by_a_node", true)]);
    expect(life.failure).toEqual({
      code: "terminal_pty_failed",
      detail: "made_up_by_a_node: why",
      at: at(50),
      correlation_id: "c1",
    });
  });

  it("TERM-05 tells one whose token was never used from one that got stuck", () => {
    expect(play([{ type: "unused", at: at(9) }]).life).toMatchObject({ state: "closed", failure: null });
    const stuck = play([
      { type: "abandoned", at: at(9), code: "terminal_ui_connecting_stuck", correlation_id: "c1" },
    ]);
    expect(stuck.life).toMatchObject({ state: "failed", failure: { code: "terminal_ui_connecting_stuck" } });
    const open = play([ready, { type: "abandoned", at: at(9), code: "terminal_time_over", correlation_id: "c1" }]);
    expect(open.life).toMatchObject({ state: "closed", closeReason: "terminal_time_over" });
    const lost = play([
      ready,
      { type: "abandoned", at: at(9), code: "terminal_stream_lost", correlation_id: "c1" },
    ]);
    expect(lost.life).toMatchObject({ state: "failed", failure: { code: "terminal_stream_lost" } });
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

describe("whatever comes in whatever order", () => {
  it("TERM-10 an event told twice in a row is told once", () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 12 }), anyEvent, (before, event) => {
        const once = after(play(before).life, event);
        const twice = after(once.life, event);
        expect(twice).toEqual({ life: once.life, notes: [] });
      }),
    );
  });

  it("TERM-10 what the database demands of a row is so", () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 20 }), (events) => {
        const { life, notes } = play(events);
        expect(hasEnded(life.state)).toBe(life.closedAt !== null);
        if (life.state === "failed") expect(life.failure).not.toBeNull();
        if (hasEnded(life.state)) expect(life.attached).toBe(false);
        if (life.failure) expect(Object.keys(terminalFailures)).toContain(life.failure.code);
        expect(notes.filter(({ type }) => type === "closed").length).toBeLessThanOrEqual(1);
        expect(notes.filter(({ type }) => type === "opened").length).toBeLessThanOrEqual(1);
      }),
    );
  });
});
