import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { hasClient, isAlone, needsDeadline, step } from "./state.ts";
import type { Effect, Event, State } from "./states.ts";

const why = { code: "terminal_pty_failed", detail: "no such user" };
const deadline: Event = { type: "deadline", findable: true };
const samples: Event[] = [
  { type: "client_arrived" },
  { type: "client_left" },
  { type: "stream_arrived" },
  { type: "stream_left" },
  { type: "hello" },
  { type: "attached" },
  { type: "exit", code: 0, signal: null },
  { type: "node_error", ...why },
  { type: "node_error", code: "terminal_input_overflow", detail: null },
  { type: "node_error", code: "unheard_of", detail: null },
  { type: "stream_refused", detail: "expired" },
  { type: "task_sent" },
  { type: "task_ended" },
  { type: "task_failed", ...why, findable: true },
  { type: "task_failed", code: "terminal_open_unconfirmed", detail: null, findable: true },
  { type: "task_failed", code: "terminal_relay_unavailable", detail: null, findable: false },
  deadline,
  { type: "deadline", findable: false },
  { type: "grace_over" },
  { type: "detached_over" },
  { type: "idle_over" },
  { type: "time_over" },
  { type: "close_requested", code: "terminal_access_ended" },
  { type: "overflow", bytes: 5 },
  { type: "too_large" },
  { type: "node_too_large" },
  { type: "drained" },
  { type: "moved", takenOver: true },
  { type: "moved", takenOver: false },
];
const opening: State = { at: "opening", client: true, stream: false, task: "requested" };

function run(events: Event[], from: State = opening): { state: State; effects: Effect[] } {
  const effects: Effect[] = [];
  let state = from;
  for (const event of events) {
    const outcome = step(state, event);
    state = outcome.state;
    effects.push(...outcome.effects);
  }
  return { state, effects };
}

const endsOf = (effects: Effect[]) =>
  effects.flatMap((effect) =>
    effect.do === "end_client" ? [effect.code] : effect.do === "exit_client" ? ["exit"] : [],
  );

describe("a terminal at the gateway", () => {
  it("TERM-03 is ready by what the gateway sees, and by nothing else", () => {
    const events: Event[] = [{ type: "stream_arrived" }, { type: "hello" }, { type: "attached" }];
    const { state, effects } = run(events);
    expect(state).toEqual({ at: "attached" });
    expect(effects.map((effect) => (effect.do === "step" ? effect.step : effect.do))).toEqual([
      "terminal_open_sent",
      "node_stream_connected",
      "pty_ready",
      "attach",
      "ready",
    ]);
    expect(run([{ type: "task_ended" }]).effects).toEqual([]);
  });

  it.for<[string, Event[], string]>([
    ["TERM-08 no answer of the api", [deadline], "terminal_open_unconfirmed"],
    [
      "TERM-08 no answer of the api after the task was made",
      [{ type: "task_sent" }, deadline],
      "terminal_open_unconfirmed",
    ],
    [
      "no stream in time, as the api knows",
      [
        { type: "task_sent" },
        { type: "task_failed", code: "terminal_node_stream_timeout", detail: null, findable: true },
      ],
      "terminal_node_stream_timeout",
    ],
    [
      "TERM-12 the task's success without a stream",
      [{ type: "task_ended" }, { type: "grace_over" }],
      "terminal_open_without_stream",
    ],
    [
      "TERM-07 no stream in time, while other gateways cannot find the terminal here",
      [{ type: "task_sent" }, { type: "deadline", findable: false }],
      "terminal_binding_unavailable",
    ],
    [
      "TERM-07 the task's word that another gateway got the stream, while this one cannot be found there",
      [{ type: "task_failed", code: "terminal_relay_unavailable", detail: null, findable: false }],
      "terminal_binding_unavailable",
    ],
    [
      "TERM-07 the task's word that another gateway got the stream, which knew where the terminal is",
      [{ type: "task_failed", code: "terminal_relay_unavailable", detail: null, findable: true }],
      "terminal_relay_unavailable",
    ],
    [
      "TERM-07 no answer of the api, which says more than that others cannot find the terminal",
      [{ type: "deadline", findable: false }],
      "terminal_open_unconfirmed",
    ],
    ["a stream without a shell", [{ type: "stream_arrived" }, deadline], "terminal_pty_failed"],
    [
      "what the task says",
      [{ type: "task_failed", code: "terminal_node_offline", detail: null, findable: true }],
      "terminal_node_offline",
    ],
    [
      "a task with a code of its own",
      [{ type: "task_failed", code: "boom", detail: null, findable: true }],
      "terminal_gateway_upgrade_failed",
    ],
    ["what the node says", [{ type: "stream_arrived" }, { type: "node_error", ...why }], "terminal_pty_failed"],
    [
      "TERM-04 a certificate that is not accepted",
      [{ type: "stream_refused", detail: "" }],
      "terminal_node_stream_mtls_failed",
    ],
    ["a gateway that stops", [{ type: "drained" }], "terminal_gateway_draining"],
    [
      "a shell that ends at once",
      [{ type: "stream_arrived" }, { type: "exit", code: 1, signal: null }],
      "terminal_pty_failed",
    ],
  ])("TERM-05 names what failed while it opens: %s", ([, events, code]) => {
    const { state, effects } = run(events);
    expect(state).toEqual({ at: "closed" });
    expect(endsOf(effects)).toEqual([code]);
    expect(effects.filter((effect) => effect.do === "report_failed")).toHaveLength(1);
  });

  it("TERM-08 reports that the node was asked once, and a stream proves it", () => {
    const sent = (events: Event[]) =>
      run(events).effects.filter((effect) => effect.do === "step" && effect.step === "terminal_open_sent").length;
    expect(sent([])).toBe(0);
    expect(sent([{ type: "task_sent" }, { type: "stream_arrived" }, { type: "task_sent" }])).toBe(1);
    expect(sent([{ type: "stream_arrived" }, { type: "task_sent" }])).toBe(1);
    const unconfirmed: Event = {
      type: "task_failed",
      code: "terminal_open_unconfirmed",
      detail: null,
      findable: true,
    };
    expect(run([{ type: "stream_arrived" }, unconfirmed]).state.at).toBe("opening");
  });

  it("TERM-08 reports the code that the client gets, in every state and at every event", () => {
    const states: State[] = [
      opening,
      { ...opening, stream: true, task: "sent" },
      { ...opening, client: false, task: "ended" },
      { at: "attaching" },
      { at: "attached" },
      { at: "detached" },
      ...[true, false].flatMap((client) =>
        [true, false].map((stream): State => ({ at: "away", client, stream, informed: false })),
      ),
      { at: "away", client: true, stream: false, informed: true },
      { at: "closed" },
    ];
    for (const state of states) {
      for (const event of samples) {
        const { effects } = step(state, event);
        const codes = effects.flatMap((effect) => (effect.do === "end_client" ? [effect.code] : []));
        const reported = effects.flatMap((effect) =>
          effect.do === "report_failed" || effect.do === "report_closed" ? [effect.why.code] : [],
        );
        const cell = `${JSON.stringify(state)} ${JSON.stringify(event)}`;
        // A gateway that stops leaves the shell as it is, and a closed terminal was reported before.
        if (event.type === "drained" || state.at === "closed") continue;
        // The newer gateway opens it.
        if (event.type === "moved" && state.at === "opening") continue;
        for (const code of codes) expect(reported, cell).toEqual([code]);
      }
    }
  });

  it("TERM-12 a stream that came just before the grace was over is waited for", () => {
    const { state } = run([{ type: "task_ended" }, { type: "stream_arrived" }, { type: "grace_over" }]);
    expect(state.at).toBe("opening");
  });

  it("TERM-05 whatever happens, each client ends once, and a closed terminal does nothing", () => {
    const event = fc.constantFrom(...samples);
    fc.assert(
      fc.property(fc.array(event, { maxLength: 40 }), fc.boolean(), (events, opens) => {
        let state: State = opens ? opening : { at: "away", client: true, stream: false, informed: false };
        let clients = 1;
        for (const next of events) {
          // As sockets are: one that is not there does not leave, say or end anything.
          if (next.type === "client_left" && !hasClient(state)) continue;
          const wasClosed = state.at === "closed";
          const outcome = step(state, next);
          if (next.type === "client_arrived") clients += 1;
          if (next.type === "client_left") clients -= 1;
          for (const effect of outcome.effects) {
            if (["end_client", "exit_client", "end_older_client"].includes(effect.do)) clients -= 1;
          }
          state = outcome.state;
          expect(clients).toBe(hasClient(state) ? 1 : 0);
          if (wasClosed) {
            expect(state.at).toBe("closed");
            expect(outcome.effects.filter(({ do: what }) => what.startsWith("report"))).toEqual([]);
          }
          const closings = outcome.effects.filter(
            ({ do: what }) => what === "report_closed" || what === "report_failed",
          );
          expect(closings.length).toBeLessThanOrEqual(1);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  it("TERM-05 a client that waits has a deadline, and the deadline ends its waiting", () => {
    const event = fc.constantFrom(...samples);
    fc.assert(
      fc.property(fc.array(event, { maxLength: 40 }), (events) => {
        const { state } = run(events);
        const isInformed = state.at === "away" && state.informed;
        const waits = hasClient(state) && state.at !== "attached" && !isInformed;
        if (waits) {
          expect(needsDeadline(state)).toBe(true);
          expect(endsOf(step(state, deadline).effects)).toHaveLength(1);
        }
        // No session stays without a time limit: it waits with a deadline, is alone for a while, is used, or is over.
        const bounded = needsDeadline(state) || isAlone(state) || state.at === "attached" || state.at === "closed";
        expect(bounded).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });

  it("TERM-10 the newest client wins", () => {
    const { state, effects } = run([{ type: "client_arrived" }], { at: "attached" });
    expect(state.at).toBe("attaching");
    expect(effects.map(({ do: what }) => what)).toEqual(["end_older_client", "send_reached_steps", "attach"]);
  });

  it.for([
    ["a newer client is there", true, "terminal_taken_over"],
    ["only its stream is there", false, "terminal_stream_lost"],
  ] as const)(
    "TERM-07 a terminal that moves to another gateway leaves its shell running: %s",
    ([, takenOver, code]) => {
      const { state, effects } = run([{ type: "moved", takenOver }], { at: "attached" });
      expect(state.at).toBe("closed");
      expect(endsOf(effects)).toEqual([code]);
      expect(effects).toContainEqual({ do: "end_stream", shell: "goes_on", reason: "restart" });
      expect(effects).toContainEqual({ do: "report_failed", why: { code, detail: null }, ended: false });
    },
  );

  it("TERM-07 a client that attached where nobody finds it gets the reason, and the shell is kept", () => {
    const { state, effects } = run([{ type: "deadline", findable: false }], {
      ...{ at: "away", client: true, stream: false, informed: false },
    });
    expect(state).toMatchObject({ at: "away", client: false });
    expect(endsOf(effects)).toEqual(["terminal_binding_unavailable"]);
  });

  it("TERM-11 a stream that breaks and comes back finds its client again", () => {
    const events: Event[] = [
      { type: "stream_left" },
      { type: "stream_arrived" },
      { type: "hello" },
      { type: "attached" },
    ];
    const { state, effects } = run(events, { at: "attached" });
    expect(state.at).toBe("attached");
    expect(endsOf(effects)).toEqual([]);
    expect(effects[0]).toEqual({ do: "inform_client" });
  });

  it("TERM-10 a client that was ready waits for its node as long as the shell may live, and no longer", () => {
    const { state } = run([{ type: "stream_left" }, deadline], { at: "attached" });
    expect(state).toMatchObject({ at: "away", client: true, informed: true });
    const late = run([{ type: "detached_over" }], state);
    expect(late.state.at).toBe("closed");
    expect(endsOf(late.effects)).toEqual(["terminal_stream_lost"]);
  });
});
