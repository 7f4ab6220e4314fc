// What can happen to a terminal at the gateway: a total table from states and events to the next state and the effects.
// Pure: sockets and clocks are in session.ts. Whatever happens, a connected client ends by exactly one error or exit, and a
// closed terminal does nothing more.

import { isTerminalFailure, type TerminalFailureCode } from "@holdfast/contracts/reasons/terminal";
import { exhaustive } from "@holdfast/kit/exhaustive";
import type { Effect, Event, Exit, Outcome, State, Why } from "./states.ts";

type At = State["at"];
type In<S extends At> = Extract<State, { at: S }>;
type Row<S extends At> = {
  [E in Event["type"]]: (state: In<S>, event: Extract<Event, { type: E }>) => Outcome;
};

export function step(state: State, event: Event): Outcome {
  const row = table[state.at] as Record<Event["type"], (state: State, event: Event) => Outcome>;
  return row[event.type](state, event);
}

export const hasClient = (state: State) =>
  state.at === "attaching" || state.at === "attached" || ("client" in state && state.client);
const hasStream = (state: State) =>
  state.at === "attaching" ||
  state.at === "attached" ||
  state.at === "detached" ||
  ("stream" in state && state.stream);

/** A client waits for `ready`, or for a shell that is being opened. */
export const needsDeadline = (state: State) =>
  state.at === "opening" || state.at === "attaching" || (state.at === "away" && state.client && !state.informed);
export const needsGrace = (state: State) => state.at === "opening" && state.task === "ended";
/** No client is connected to the shell, or none can be: it is kept for a limited time. */
export const isAlone = (state: State) =>
  state.at === "detached" || (state.at === "away" && (!state.client || state.informed));

const to = (state: State, ...effects: Effect[]): Outcome => ({ state, effects });
const stay = (state: State): Outcome => ({ state, effects: [] });
const closed: State = { at: "closed" };
const away = (client: boolean, stream: boolean): State => ({ at: "away", client, stream, informed: false });

/** A code of the catalogue; one that is unknown means that the shell has ended. */
const known = ({ code, detail }: Why, otherwise: TerminalFailureCode) => ({
  code: isTerminalFailure(code) ? code : otherwise,
  detail,
});

const endClient = (state: State, why: ReturnType<typeof known>): Effect[] =>
  hasClient(state) ? [{ do: "end_client", ...why }] : [];

const endShell = (state: State, reason: string): Effect[] =>
  hasStream(state) ? [{ do: "end_stream", shell: "ends", reason }] : [];

/** The shell ends too. */
function finish(state: State, given: Why, otherwise: TerminalFailureCode = "terminal_session_unknown"): Outcome {
  const why = known(given, otherwise);
  const reported: Effect =
    state.at === "opening" ? { do: "report_failed", why, ended: true } : { do: "report_closed", why, exit: null };
  return to(closed, ...endClient(state, why), ...endShell(state, why.code), reported);
}

const discarded = ({ bytes }: { bytes: number }): Why => ({
  code: "terminal_input_overflow",
  detail: `${bytes} bytes were typed while the shell could not be reached, and discarded.`,
});
const plain = (code: TerminalFailureCode): Why => ({ code, detail: null });
const lost = plain("terminal_stream_lost");
const notFound = plain("terminal_binding_unavailable");
const tooLarge = plain("terminal_frame_too_large");
const nodeTooLarge = plain("terminal_node_frame_too_large");

/** Only a node that got the task connects a stream, possibly before the api has responded. */
const sent = ({ task }: In<"opening">) => ({ task: task === "requested" ? ("sent" as const) : task });
const sentSteps = ({ task }: In<"opening">): Effect[] =>
  task === "requested" ? [{ do: "step", step: "terminal_open_sent" }] : [];

/** The api reports within this time why there is no stream; otherwise nothing is known about the node. */
function overdue({ stream, task }: In<"opening">, { findable }: { findable: boolean }): Why {
  if (stream)
    return {
      code: "terminal_pty_failed",
      detail: "The node's stream is connected, but its shell did not start in time.",
    };
  if (!findable && task !== "requested") return notFound;
  switch (task) {
    case "requested":
      return plain("terminal_open_unconfirmed");
    case "sent":
      return {
        code: "terminal_open_unconfirmed",
        detail:
          "The task for the node was made. The API did not answer after that, so it is not known whether the node took it.",
      };
    case "ended":
      return plain("terminal_open_without_stream");
    default:
      return exhaustive(task);
  }
}

function exited(state: State, { code, signal }: Exit): Outcome {
  const exit = { code, signal };
  return to(
    closed,
    ...(hasClient(state) ? ([{ do: "exit_client", exit }] as const) : []),
    { do: "end_stream", shell: "goes_on", reason: "exit" },
    { do: "report_closed", why: { code: "exit", detail: null }, exit },
  );
}

function drained(state: State): Outcome {
  const why = known(plain("terminal_gateway_draining"), "terminal_gateway_draining");
  const reported: Effect[] =
    state.at === "opening"
      ? [{ do: "report_failed", why, ended: false }]
      : state.at === "attached"
        ? [{ do: "report_detached" }]
        : [];
  return to(
    closed,
    ...endClient(state, why),
    ...(hasStream(state) ? ([{ do: "end_stream", shell: "goes_on", reason: "restart" }] as const) : []),
    ...reported,
  );
}

/** The newer gateway reports for it; the node connects its stream again, which is passed on to there. */
function moved(state: State, { takenOver }: { takenOver: boolean }): Outcome {
  const why = known(takenOver ? plain("terminal_taken_over") : lost, "terminal_stream_lost");
  // A failure that is reported while it opens would end it for the newer gateway, too.
  const isReported = hasClient(state) && state.at !== "opening";
  return to(
    closed,
    ...endClient(state, why),
    ...(hasStream(state) ? ([{ do: "end_stream", shell: "goes_on", reason: "restart" }] as const) : []),
    ...(isReported ? ([{ do: "report_failed", why, ended: false }, { do: "report_detached" }] as const) : []),
  );
}

/** The client is disconnected, the shell stays. */
function dropClient(state: State, next: State, given: Why): Outcome {
  const why = known(given, "terminal_stream_lost");
  return to(
    next,
    ...endClient(state, why),
    ...(next.at === "detached" ? ([{ do: "detach" }] as const) : []),
    { do: "report_failed", why, ended: false },
    { do: "report_detached" },
  );
}

function nodeError(state: State, { code, detail }: Why, shell: State): Outcome {
  const why = { code, detail };
  // The only one that does not end the shell.
  if (code === "terminal_input_overflow" && hasClient(state)) return dropClient(state, shell, why);
  return finish(state, why, "terminal_pty_failed");
}

const alike = {
  idle_over: (state: State) => finish(state, plain("terminal_idle")),
  time_over: (state: State) => finish(state, plain("terminal_time_over")),
  close_requested: (state: State, { code }: { code: string }) =>
    finish(state, { code, detail: null }, "terminal_closed"),
  drained,
  moved,
  task_sent: stay,
  task_ended: stay,
  task_failed: stay,
  grace_over: stay,
  detached_over: stay,
  stream_refused: stay,
  deadline: stay,
} as const;

const streaming = {
  ...alike,
  client_arrived: () =>
    to(
      { at: "attaching" },
      { do: "end_older_client" },
      { do: "send_reached_steps", stream: true, shell: true },
      { do: "attach" },
    ),
  stream_arrived: () => stay(away(true, true)),
  hello: stay,
  exit: exited,
  node_error: (state: State, event: Why) => nodeError(state, event, { at: "detached" }),
  overflow: (state: State, event: { bytes: number }) => dropClient(state, { at: "detached" }, discarded(event)),
  too_large: (state: State) => dropClient(state, { at: "detached" }, tooLarge),
  node_too_large: (state: State) => dropClient(state, away(false, false), nodeTooLarge),
} as const;

const table: { [S in At]: Row<S> } = {
  opening: {
    ...alike,
    client_arrived: (state) =>
      to({ ...state, client: true }, ...(state.client ? ([{ do: "end_older_client" }] as const) : []), {
        do: "send_reached_steps",
        stream: state.stream,
        shell: false,
      }),
    client_left: (state) => stay({ ...state, client: false }),
    stream_arrived: (state) =>
      to({ ...state, stream: true, ...sent(state) }, ...sentSteps(state), {
        do: "step",
        step: "node_stream_connected",
      }),
    stream_left: (state) => stay({ ...state, stream: false }),
    hello: ({ client }) =>
      client
        ? to({ at: "attaching" }, { do: "step", step: "pty_ready" }, { do: "attach" })
        : to({ at: "detached" }, { do: "step", step: "pty_ready" }),
    attached: stay,
    exit: (state) =>
      finish(state, { code: "terminal_pty_failed", detail: "The shell ended before it was ready." }),
    node_error: (state, { code, detail }) => finish(state, { code, detail }, "terminal_pty_failed"),
    stream_refused: (state, { detail }) => finish(state, { code: "terminal_node_stream_mtls_failed", detail }),
    task_sent: (state) => to({ ...state, ...sent(state) }, ...sentSteps(state)),
    task_ended: (state) => stay({ ...state, task: "ended" }),
    task_failed: (state, { code, detail, findable }) => {
      // A node that connects its stream has taken the task, even if the api could not confirm it.
      if (state.stream && code === "terminal_open_unconfirmed") return stay(state);
      // Another gateway got the stream, and could not find the terminal because this one did not publish it.
      if (!findable && code === "terminal_relay_unavailable") return finish(state, notFound);
      return finish(state, { code, detail }, "terminal_gateway_upgrade_failed");
    },
    deadline: (state, event) => finish(state, overdue(state, event)),
    // With a stream, the deadline decides.
    grace_over: (state) => (state.stream ? stay(state) : finish(state, plain("terminal_open_without_stream"))),
    overflow: (state, event) => finish(state, discarded(event)),
    too_large: (state) => finish(state, tooLarge),
    node_too_large: (state) => finish(state, nodeTooLarge),
  },
  attaching: {
    ...streaming,
    client_left: () => to({ at: "detached" }, { do: "detach" }, { do: "report_detached" }),
    stream_left: () => stay(away(true, false)),
    attached: () => to({ at: "attached" }, { do: "ready" }),
    deadline: (state) => dropClient(state, { at: "detached" }, lost),
  },
  attached: {
    ...streaming,
    client_left: () => to({ at: "detached" }, { do: "detach" }, { do: "report_detached" }),
    stream_left: () => to({ at: "away", client: true, stream: false, informed: true }, { do: "inform_client" }),
    attached: stay,
  },
  detached: {
    ...alike,
    client_arrived: () =>
      to({ at: "attaching" }, { do: "send_reached_steps", stream: true, shell: true }, { do: "attach" }),
    client_left: stay,
    stream_arrived: () => stay(away(false, true)),
    stream_left: () => stay(away(false, false)),
    hello: stay,
    attached: stay,
    exit: exited,
    node_error: (state, event) => nodeError(state, event, state),
    detached_over: (state) =>
      to(closed, ...endShell(state, "detached"), {
        do: "report_closed",
        why: { code: "detached", detail: null },
        exit: null,
      }),
    overflow: stay,
    too_large: stay,
    node_too_large: () => stay(away(false, false)),
  },
  away: {
    ...alike,
    client_arrived: (state) =>
      to(away(true, state.stream), ...(state.client ? ([{ do: "end_older_client" }] as const) : []), {
        do: "send_reached_steps",
        stream: state.stream,
        shell: false,
      }),
    client_left: ({ stream }) => to(away(false, stream), { do: "report_detached" }),
    stream_arrived: (state) => stay({ ...state, stream: true }),
    stream_left: (state) => stay({ ...state, stream: false }),
    hello: ({ client }) => (client ? to({ at: "attaching" }, { do: "attach" }) : stay({ at: "detached" })),
    attached: stay,
    exit: exited,
    node_error: (state, event) => nodeError(state, event, away(false, state.stream)),
    stream_refused: (state, { detail }) =>
      state.client
        ? dropClient(state, away(false, state.stream), { code: "terminal_node_stream_mtls_failed", detail })
        : stay(state),
    deadline: (state, { findable }) =>
      state.client && !state.informed
        ? dropClient(state, away(false, state.stream), findable || state.stream ? lost : notFound)
        : stay(state),
    detached_over: (state) => (isAlone(state) ? finish(state, lost) : stay(state)),
    overflow: (state, event) =>
      state.client ? dropClient(state, away(false, state.stream), discarded(event)) : stay(state),
    too_large: (state) => (state.client ? dropClient(state, away(false, state.stream), tooLarge) : stay(state)),
    node_too_large: (state) =>
      state.client ? dropClient(state, away(false, false), nodeTooLarge) : stay(away(false, false)),
  },
  closed: {
    ...alike,
    idle_over: stay,
    time_over: stay,
    close_requested: stay,
    drained: stay,
    moved: stay,
    client_arrived: () => to(closed, { do: "end_client", code: "terminal_session_unknown", detail: null }),
    client_left: stay,
    stream_arrived: () => to(closed, { do: "end_stream", shell: "goes_on", reason: "closed" }),
    stream_left: stay,
    hello: stay,
    attached: stay,
    exit: stay,
    node_error: stay,
    overflow: stay,
    too_large: stay,
    node_too_large: stay,
  },
};
