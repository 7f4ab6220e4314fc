import { isTerminalFailure, terminalFailures } from "@holdfast/contracts/reasons/terminal";
import {
  chainSteps,
  readinessSteps,
  type ServerFrame,
  type TerminalError,
} from "@holdfast/contracts/terminal/frames";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { noticedFailure } from "./failures.ts";
import { alarmOf, begin, step } from "./state.ts";
import type { Effect, Event, Grant, Phase, State } from "./states.ts";

const grant: Grant = {
  token: "secret",
  url: "wss://term.example/v1/terminal",
  sessionId: "s1",
  correlationId: "c1",
  deadlineSeconds: 15,
};

type Untimed<E = Event> = E extends { at: number } ? Omit<E, "at"> & { at?: number } : never;

/** Follows events from the start; each comes 100 ms after the one before unless it says when. */
function follow(events: Untimed[], shell?: string): { state: State; effects: Effect[] } {
  let { state, effects } = begin(shell, 0);
  let at = 0;
  for (const event of events) {
    at = event.at ?? at + 100;
    ({ state, effects } = step(state, { ...event, at } as Event));
  }
  return { state, effects };
}

const frame = (frame: ServerFrame): Untimed => ({ type: "frame", frame });
const ready = frame({ type: "ready", session_id: "s1", offset: 0, window: 1, replay: 0 });
const granted: Untimed = { type: "granted", grant };
const opened: Untimed = { type: "opened" };
const closed: Untimed = { type: "closed" };
const comingUp = [granted, opened, ready];
const error = (code: keyof typeof terminalFailures, message?: string): TerminalError => ({
  code,
  ...terminalFailures[code],
  ...(message ? { message } : {}),
  correlation_id: "c1",
});
const failed = (code: keyof typeof terminalFailures): Untimed => frame({ type: "error", ...error(code) });

describe("a terminal that comes up", () => {
  it("TERM-08 asks, joins, shows each step with its time, and is ready", () => {
    expect(begin(undefined, 0).effects).toEqual([{ do: "request_token", shell: undefined }]);
    expect(follow([granted]).effects).toEqual([{ do: "connect", grant }]);
    const steps = readinessSteps.map((each, index) =>
      frame({ type: "status", step: each, at: "2026-01-01T00:00:00Z", ms: index * 7, correlation_id: "c1" }),
    );
    const { state } = follow([granted, opened, ...steps]);
    expect(state).toMatchObject({
      phase: "waiting",
      round: { chain: Object.fromEntries(readinessSteps.map((each, index) => [each, 100 + index * 7])) },
    });
    expect(follow(comingUp).state).toMatchObject({ phase: "ready", shell: "s1" });
  });

  it("TERM-08 counts from the click: the first two steps itself, until the gateway tells its part", () => {
    const { state } = follow([granted, opened]);
    expect(state).toMatchObject({ round: { chain: { token_ready: 100, browser_ws_ready: 200 } } });
  });

  it("TERM-10 tells how the shell ended", () => {
    const { state, effects } = follow([...comingUp, frame({ type: "exit", code: 3, signal: null })]);
    expect(state).toEqual({ phase: "ended", exit: { code: 3, signal: null } });
    expect(effects).toEqual([{ do: "disconnect" }]);
  });
});

describe("a terminal that does not come up", () => {
  it("TERM-09 shows what the gateway says, with the reason below the catalogue's sentence", () => {
    const { state } = follow([
      granted,
      opened,
      frame({ type: "error", ...error("terminal_pty_failed", "no such user") }),
    ]);
    expect(state).toMatchObject({
      phase: "failed",
      shell: undefined,
      failure: {
        code: "terminal_pty_failed",
        message: terminalFailures.terminal_pty_failed.message,
        why: "no such user",
        correlationId: "c1",
      },
      chain: { browser_ws_ready: expect.any(Number), failed: expect.any(Number) },
    });
  });

  it("TERM-05 is never stuck: after the promised time and two seconds it says so, and reports it", () => {
    const waiting = follow([granted, opened]).state;
    expect(alarmOf(waiting)).toBe(100 + 17_000);
    const { state, effects } = step(waiting, { type: "alarm", at: 17_100 });
    expect(state).toMatchObject({ phase: "failed", failure: { code: "terminal_ui_connecting_stuck" } });
    expect(effects).toMatchObject([
      { do: "disconnect" },
      { do: "report", sessionId: "s1", failure: { code: "terminal_ui_connecting_stuck" } },
    ]);
  });

  it.each([
    [false, "terminal_public_route_missing"],
    [true, "terminal_gateway_upgrade_failed"],
  ] as const)("TERM-09 tells a missing route from a refused upgrade (gateway answers: %s)", (reachable, code) => {
    expect(follow([granted, closed]).effects).toEqual([
      { do: "disconnect" },
      { do: "check_route", url: grant.url },
    ]);
    const { state, effects } = follow([granted, closed, { type: "checked", reachable }]);
    expect(state).toMatchObject({ phase: "failed", failure: { code, correlationId: "c1" } });
    expect(effects).toContainEqual(expect.objectContaining({ do: "report", sessionId: "s1" }));
  });

  it("TERM-02 does not wait for a socket that never opens, and leaves time to find out why", () => {
    const joining = follow([granted]).state;
    const late = step(joining, { type: "alarm", at: alarmOf(joining) ?? 0 });
    expect(late.state.phase).toBe("checking");
    expect(alarmOf(late.state)).toBe(100 + 17_000);
    const { state } = step(late.state, { type: "alarm", at: 17_100 });
    expect(state).toMatchObject({ phase: "failed", failure: { code: "terminal_public_route_missing" } });
  });

  it("TERM-05 gives up on a token that does not come; there is no session yet to report it for", () => {
    const { state, effects } = step(begin(undefined, 0).state, { type: "alarm", at: 17_000 });
    expect(state).toMatchObject({ phase: "failed", failure: { code: "terminal_ui_connecting_stuck" } });
    expect(effects).toEqual([{ do: "disconnect" }]);
  });

  it("TERM-09 works by the same click after repair: it asks for a new shell, or for the one that was there", () => {
    const opening = follow([granted, opened, failed("terminal_node_offline"), { type: "try_again" }]);
    expect(opening.effects).toEqual([{ do: "request_token", shell: undefined }]);
    const attaching = follow([granted, opened, failed("terminal_node_offline"), { type: "try_again" }], "s1");
    expect(attaching.effects).toEqual([{ do: "request_token", shell: "s1" }]);
  });
});

describe("a terminal that was there", () => {
  it("TERM-10 comes back by itself, with growing pauses and no end, until it is there", () => {
    let { state } = follow([...comingUp, closed]);
    let at = 400;
    const tried: number[] = [];
    for (let attempt = 1; attempt <= 30; attempt += 1) {
      expect(state).toMatchObject({ phase: "pausing", lost: { shell: "s1", attempt } });
      at = alarmOf(state) ?? 0;
      const next = step(state, { type: "alarm", at });
      if (next.state.phase === "asking") tried.push(attempt);
      const failure = { ...noticedFailure("terminal_gateway_upgrade_failed", {}), code: "unreachable" };
      const failing: Event =
        next.state.phase === "asking"
          ? { type: "refused", failure, at }
          : { type: "checked", reachable: false, at };
      ({ state } = step(next.state, failing));
    }
    expect(tried, "tries that asked for a token").toEqual([4, 8, 12, 16, 20, 24, 28]);
    const back = step(step(state, { type: "try_again", at }).state, { type: "checked", reachable: true, at });
    expect(back.effects).toEqual([{ do: "request_token", shell: "s1" }]);
  });

  it("TERM-10 asks its gateway before it asks for a token", () => {
    const { state, effects } = follow([...comingUp, closed, { type: "alarm" }]);
    expect(state).toMatchObject({ phase: "probing", lost: { attempt: 1, cause: "closed" } });
    expect(effects).toEqual([{ do: "check_route", url: grant.url }]);
    const silent = follow([...comingUp, closed, { type: "alarm" }, { type: "alarm" }]).state;
    expect(silent).toMatchObject({ phase: "pausing", lost: { attempt: 2, cause: "unresponsive" } });
  });

  it("TERM-10 gives up a gateway that does not answer, and says that", () => {
    const { state, effects } = follow([...comingUp, { type: "silent" }]);
    expect(state).toMatchObject({ phase: "pausing", lost: { shell: "s1", attempt: 1, cause: "unresponsive" } });
    expect(effects).toEqual([{ do: "disconnect" }]);
    expect(follow([granted, opened, { type: "silent" }]).state.phase, "while it comes up").toBe("checking");
    const unanswered = follow([granted, opened, { type: "silent" }, { type: "checked", reachable: true }]).state;
    expect(unanswered).toMatchObject({ failure: { code: "terminal_ui_connecting_stuck" } });
  });

  it("TERM-10 stays at a gateway that answers while the node does not, and is back with the node", () => {
    const away = frame({ type: "unresponsive", cause: "silent", since: "2026-01-01T00:00:00Z" });
    const { state, effects } = follow([...comingUp, away]);
    expect(state).toMatchObject({ phase: "unresponsive", shell: "s1", node: { cause: "silent" } });
    expect(effects).toEqual([]);
    expect(follow([...comingUp, away, frame({ type: "responsive" })]).state).toEqual(follow(comingUp).state);
    expect(follow([...comingUp, away, ready]).state).toEqual(follow(comingUp).state);
    expect(follow([...comingUp, away, { type: "silent" }]).state.phase).toBe("pausing");
    expect(follow([...comingUp, away, failed("terminal_stream_lost")]).state.phase).toBe("pausing");
    expect(follow([...comingUp, away, failed("terminal_access_ended")]).state.phase).toBe("failed");
  });

  it("TERM-10 begins to count anew only after one that held for a while", () => {
    const alarm: Untimed = { type: "alarm" };
    const again = [
      ...comingUp,
      closed,
      alarm,
      { type: "checked", reachable: true } as Untimed,
      ...comingUp,
      closed,
    ];
    expect(follow(again).state).toMatchObject({ phase: "pausing", lost: { attempt: 2 } });
    const later = [...again.slice(0, -1), { ...closed, at: 60_000 } as Untimed];
    expect(follow(later).state).toMatchObject({ phase: "pausing", lost: { attempt: 1 } });
  });

  const underWay: [string, Untimed[]][] = [
    ["a pause", []],
    ["the question to the gateway", [{ type: "alarm" }]],
    ["the question for a token", [{ type: "alarm" }, { type: "checked", reachable: true }]],
    ["the opening", [{ type: "alarm" }, { type: "checked", reachable: true }, granted]],
    ["the wait for the shell", [{ type: "alarm" }, { type: "checked", reachable: true }, granted, opened]],
    ["the search for the reason", [{ type: "alarm" }, { type: "checked", reachable: true }, granted, closed]],
  ];
  it.each(underWay)("TERM-10 tries at once when a person asks for it, during %s", (_, events) => {
    const { state, effects } = follow([...comingUp, closed, ...events, { type: "try_again" }]);
    expect(state.phase).toBe("probing");
    expect(effects.at(-1)).toEqual({ do: "check_route", url: grant.url });
  });

  it.each(underWay)(
    "TERM-10 stops when a person asks for it, during %s, and can be told to go on",
    (_, events) => {
      const { state } = follow([...comingUp, closed, ...events, { type: "stop" }]);
      expect(state).toMatchObject({ phase: "stopped", lost: { shell: "s1" } });
      expect(alarmOf(state)).toBeUndefined();
      for (const type of ["alarm", "nudge", "closed"] as const)
        expect(step(state, { type, at: 1 }).state).toBe(state);
      const next = step(state, { type: "try_again", at: 1 });
      expect(next.state).toMatchObject({ phase: "probing", lost: { attempt: 1 } });
    },
  );

  it("TERM-10 takes the browser's word only as a hint to try", () => {
    expect(follow([...comingUp, closed, { type: "nudge" }]).state.phase).toBe("probing");
    expect(follow([...comingUp, { type: "nudge" }]).state.phase).toBe("ready");
  });

  it("TERM-09 reports once what keeps it away for long", () => {
    let { state } = follow([...comingUp, closed]);
    const reported: number[] = [];
    for (let attempt = 1; attempt <= 9; attempt += 1) {
      state = step(state, { type: "try_again", at: 0 }).state;
      for (const event of [{ type: "checked", reachable: true }, granted, closed] as Untimed[])
        state = step(state, { ...event, at: 0 } as Event).state;
      const next = step(state, { type: "checked", reachable: true, at: 0 });
      if (next.effects.some((effect) => effect.do === "report")) reported.push(attempt);
      state = next.state;
    }
    expect(reported).toEqual([4]);
  });

  it("TERM-10 goes along when the gateway restarts, but does not fight over a shell that was taken over", () => {
    expect(follow([...comingUp, failed("terminal_gateway_draining")]).state.phase).toBe("pausing");
    expect(follow([...comingUp, failed("terminal_taken_over")]).state).toMatchObject({
      phase: "failed",
      shell: "s1",
    });
  });

  it("TERM-10 does not look for a shell that is gone", () => {
    for (const code of [
      "terminal_idle",
      "terminal_time_over",
      "terminal_closed",
      "terminal_access_ended",
      "terminal_allocation_released",
      "terminal_signed_out",
      "terminal_node_revoked",
      "terminal_node_quarantined",
    ] as const)
      expect(follow([...comingUp, failed(code)]).state, code).toMatchObject({ phase: "failed", shell: undefined });
    const gone = { ...noticedFailure("terminal_gateway_upgrade_failed", {}), code: "terminal_session_unknown" };
    const asking: Untimed[] = [{ type: "alarm" }, { type: "checked", reachable: true }];
    const back = follow([...comingUp, closed, ...asking, { type: "refused", failure: gone }]);
    expect(back.state).toMatchObject({ phase: "failed", shell: undefined });
  });
});

const codes = Object.keys(terminalFailures).filter(isTerminalFailure);
const anyFrame: fc.Arbitrary<ServerFrame> = fc.oneof(
  fc.record({
    type: fc.constant("status" as const),
    step: fc.constantFrom(...chainSteps),
    at: fc.constant(""),
    ms: fc.nat(30_000),
    correlation_id: fc.constant("c1"),
  }),
  fc.constant({ type: "ready", session_id: "s1", offset: 0, window: 1, replay: 0 } as const),
  fc.constantFrom(...codes).map((code) => ({ type: "error" as const, ...error(code) })),
  fc.record({ type: fc.constant("exit" as const), code: fc.option(fc.nat(255)), signal: fc.option(fc.string()) }),
  fc.constant({ type: "pong" } as const),
  fc.constant({ type: "paused", unacknowledged: 1 } as const),
  fc.constant({ type: "unresponsive", cause: "silent", since: "2026-01-01T00:00:00Z" } as const),
  fc.constant({ type: "responsive" } as const),
);
const anyEvent: fc.Arbitrary<Untimed> = fc.oneof(
  fc.constant(granted),
  fc
    .constantFrom(...codes)
    .map((code): Untimed => ({ type: "refused", failure: { code, ...terminalFailures[code] } })),
  fc.constant(opened),
  anyFrame.map(frame),
  fc.constant(closed),
  fc.boolean().map((reachable): Untimed => ({ type: "checked", reachable })),
  fc.constantFrom<Untimed>(
    { type: "silent" },
    { type: "alarm" },
    { type: "nudge" },
    { type: "try_again" },
    { type: "stop" },
    { type: "new_shell" },
  ),
);

describe("whatever happens, in whatever order", () => {
  it("TERM-05 every state that waits has an alarm, and the alarm leads on", () => {
    fc.assert(
      fc.property(
        fc.array(anyEvent, { maxLength: 40 }),
        fc.option(fc.constant("s0"), { nil: undefined }),
        (events, shell) => {
          const { state } = follow(events, shell);
          const alarm = alarmOf(state);
          const settled: Phase[] = ["ready", "unresponsive", "stopped", "failed", "ended"];
          expect(alarm === undefined).toBe(settled.includes(state.phase));
          if (alarm !== undefined) expect(step(state, { type: "alarm", at: alarm }).state).not.toEqual(state);
        },
      ),
    );
  });

  it("TERM-05 by alarms alone it ends in a failure that a person can act on, or goes on looking for its shell", () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 40 }), (events) => {
        let { state } = follow(events);
        for (let turns = 0; turns < 20; turns++) {
          const at = alarmOf(state);
          if (at === undefined) break;
          ({ state } = step(state, { type: "alarm", at }));
        }
        const isLost = "lost" in state || ("round" in state && state.round.lost !== undefined);
        expect(isLost || ["ready", "unresponsive", "failed", "ended"].includes(state.phase)).toBe(true);
        if (state.phase === "failed") expect(state.failure.action).not.toBe("");
      }),
    );
  });

  it("TERM-10 a person can always get a new shell, and no token outlives its round", () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 40 }), (events) => {
        const { state } = follow(events);
        const { state: next, effects } = step(state, { type: "new_shell", at: 0 });
        expect(next).toMatchObject({ phase: "asking", round: { shell: undefined, lost: undefined } });
        expect(effects).toEqual([{ do: "disconnect" }, { do: "request_token", shell: undefined }]);
        for (const settled of ["ready", "unresponsive", "probing", "pausing", "stopped", "failed", "ended"])
          if (state.phase === settled) expect(JSON.stringify(state)).not.toContain(grant.token);
      }),
    );
  });
});
