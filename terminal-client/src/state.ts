// How a terminal comes up at its client and is reconnected: every state, every event, what follows. Nothing here touches a
// socket or a clock; client.ts carries out the effects. Times are milliseconds of one clock.

import { type ClientFailureCode, mayFindShellAgain } from "@holdfast/contracts/reasons/terminal";
import { clientConnectMs, clientWaitMs, PROBE_MS, TOKEN_REQUEST_MS } from "@holdfast/contracts/terminal/deadlines";
import type { ChainStep, ServerFrame } from "@holdfast/contracts/terminal/frames";
import { type Failure, failureOfFrame, noticedFailure, remedyOf } from "./failures.ts";
import { asksGatewayFirst, reconnectPauseMs } from "./reconnect.ts";
import type { Chain, Event, Exit, Lost, Next, Open, Phase, Round, State } from "./states.ts";

/** A terminal that was open for so long worked: the next loss starts to count from 1. */
const SETTLED_MS = 10_000;
/** What keeps a lost terminal away is reported once, when it does not pass by itself. */
const REPORTED_ATTEMPT = 4;

export function begin(shell: string | undefined, at: number): Next {
  return ask({ shell, askedAt: at, chain: {}, lost: undefined });
}

export function step(state: State, event: Event): Next {
  const cell = table[state.phase][event.type] as (state: State, event: Event) => Next;
  return cell(state, event);
}

/** When time itself is an event. */
export function alarmOf(state: State): number | undefined {
  switch (state.phase) {
    case "probing":
      return state.askedAt + PROBE_MS;
    case "asking":
      return state.round.askedAt + TOKEN_REQUEST_MS;
    case "joining":
      return state.grantedAt + clientConnectMs(state.grant.deadlineSeconds);
    case "checking":
    case "waiting":
      return state.grantedAt + clientWaitMs(state.grant.deadlineSeconds);
    case "pausing":
      return state.until;
    case "ready":
    case "unresponsive":
    case "stopped":
    case "failed":
    case "ended":
      return undefined;
  }
}

type Of<P extends Phase> = Extract<State, { phase: P }>;
type On<E extends Event["type"]> = Extract<Event, { type: E }>;
type Trying = Of<"asking" | "joining" | "checking" | "waiting">;
type Table = { [P in Phase]: { [E in Event["type"]]: (state: Of<P>, event: On<E>) => Next } };

const stay = (state: State): Next => ({ state, effects: [] });
const startNew = (_: State, { at }: { at: number }): Next => disconnecting(begin(undefined, at));

/** A try that is under way ends, and the next starts at once: only those after a loss can be hurried or stopped. */
const hurry = (state: Trying, { at }: { at: number }): Next =>
  state.round.lost ? disconnecting(probe(nextTry(state.round.lost), at)) : stay(state);
const halt = (state: Trying): Next =>
  state.round.lost ? disconnecting(stay({ phase: "stopped", lost: state.round.lost })) : stay(state);

/** What changes nothing, in most states. A person can have a new shell at any time. */
const unchanged = {
  granted: stay,
  refused: stay,
  opened: stay,
  frame: stay,
  closed: stay,
  silent: stay,
  checked: stay,
  alarm: stay,
  nudge: stay,
  try_again: stay,
  stop: stay,
  new_shell: startNew,
} as const;

const open = {
  ...unchanged,
  frame: (state: Of<"ready" | "unresponsive">, { frame, at }: On<"frame">) => whileOpen(state, frame, at),
  closed: (state: Of<"ready" | "unresponsive">, { at }: On<"closed">) => lose(state, { at, cause: "closed" }),
  silent: (state: Of<"ready" | "unresponsive">, { at }: On<"silent">) =>
    disconnecting(lose(state, { at, cause: "unresponsive" })),
} as const;

const table: Table = {
  probing: {
    ...unchanged,
    checked: ({ lost }, { reachable, at }) =>
      reachable ? askAgain(lost, at) : pause({ ...lost, cause: "unresponsive", failure: undefined }, at),
    alarm: ({ lost }, { at }) => disconnecting(pause({ ...lost, cause: "unresponsive", failure: undefined }, at)),
    try_again: ({ lost }, { at }) => disconnecting(probe(nextTry(lost), at)),
    stop: ({ lost }) => disconnecting(stay({ phase: "stopped", lost })),
  },
  asking: {
    ...unchanged,
    granted: ({ round }, { grant, at }) => ({
      state: {
        phase: "joining",
        round: reached(round, "token_ready", at - round.askedAt),
        grant,
        grantedAt: at,
      },
      effects: [{ do: "connect", grant }],
    }),
    refused: ({ round }, { failure, at }) => failOrPause({ round, failure, at }),
    alarm: ({ round }, { at }) =>
      disconnecting(failOrPause({ round, failure: noticedFailure("terminal_ui_connecting_stuck", {}), at })),
    try_again: hurry,
    stop: halt,
  },
  joining: {
    ...unchanged,
    opened: ({ round, ...rest }, { at }) => ({
      state: { ...rest, phase: "waiting", round: reached(round, "browser_ws_ready", at - round.askedAt) },
      effects: [],
    }),
    closed: (state, { detail }) => check(state, detail),
    alarm: (state) => check(state, "The connection did not open in time."),
    try_again: hurry,
    stop: halt,
  },
  checking: {
    ...unchanged,
    checked: (state, { reachable, detail, at }) =>
      notice(state, reachable ? unansweredOf(state) : "terminal_public_route_missing", {
        detail: detail ?? state.detail,
        at,
      }),
    alarm: (state, { at }) => notice(state, "terminal_public_route_missing", { detail: state.detail, at }),
    try_again: hurry,
    stop: halt,
  },
  waiting: {
    ...unchanged,
    frame: (state, { frame, at }) => whileWaiting(state, frame, at),
    closed: (state, { detail, at }) => notice(state, "terminal_gateway_upgrade_failed", { detail, at }),
    silent: (state) => check(state, "The connection opened, but the gateway did not answer."),
    alarm: (state, { at }) => notice(state, "terminal_ui_connecting_stuck", { at }),
    try_again: hurry,
    stop: halt,
  },
  ready: open,
  unresponsive: open,
  pausing: {
    ...unchanged,
    alarm: ({ lost }, { at }) => retry(lost, at),
    nudge: ({ lost }, { at }) => probe(lost, at),
    try_again: ({ lost }, { at }) => probe(lost, at),
    stop: ({ lost }) => stay({ phase: "stopped", lost }),
  },
  stopped: {
    ...unchanged,
    try_again: ({ lost }, { at }) => probe({ ...lost, attempt: 1 }, at),
  },
  failed: {
    ...unchanged,
    try_again: ({ shell }, { at }) => begin(shell, at),
  },
  ended: {
    ...unchanged,
    try_again: startNew,
  },
};

function whileWaiting(state: Of<"waiting">, frame: ServerFrame, at: number): Next {
  const { round, grant } = state;
  switch (frame.type) {
    case "status": {
      // The gateway counts from the token on, the client from the request.
      const ms = (round.chain.token_ready ?? 0) + (frame.step === "token_ready" ? 0 : frame.ms);
      return { state: { ...state, round: reached(round, frame.step, ms) }, effects: [] };
    }
    case "ready":
      return {
        state: {
          phase: "ready",
          shell: frame.session_id,
          url: grant.url,
          correlationId: grant.correlationId,
          since: at,
          attempt: round.lost?.attempt ?? 0,
        },
        effects: [],
      };
    case "error":
      return disconnecting(failOrPause({ round, failure: failureOfFrame(frame), at }));
    case "exit":
      return ended(frame);
    case "paused":
    case "unresponsive":
    case "responsive":
    case "input":
    case "ack":
    case "pong":
      return stay(state);
  }
}

function whileOpen(state: Of<"ready" | "unresponsive">, frame: ServerFrame, at: number): Next {
  const { shell, url, correlationId, since, attempt } = state;
  const here: Open = { shell, url, correlationId, since, attempt };
  switch (frame.type) {
    case "unresponsive":
      return stay({ phase: "unresponsive", ...here, node: { cause: frame.cause, since: frame.since } });
    case "responsive":
    case "ready":
      return stay({ phase: "ready", ...here });
    case "error": {
      const failure = failureOfFrame(frame);
      // The shell keeps running: nobody has to be asked.
      if (mayFindShellAgain(failure.code)) return disconnecting(lose(state, { at, cause: "closed", failure }));
      return disconnecting(fail(failure, shell, {}));
    }
    case "exit":
      return ended(frame);
    case "status":
    case "paused":
    case "input":
    case "ack":
    case "pong":
      return stay(state);
  }
}

function ask(round: Round): Next {
  return { state: { phase: "asking", round }, effects: [{ do: "request_token", shell: round.shell }] };
}

function askAgain(lost: Lost, at: number): Next {
  return ask({ shell: lost.shell, askedAt: at, chain: {}, lost });
}

function retry(lost: Lost, at: number): Next {
  return asksGatewayFirst(lost.attempt) ? probe(lost, at) : askAgain(lost, at);
}

/** A person may ask as often as they like: no token is used up by it. */
function probe(lost: Lost, at: number): Next {
  return { state: { phase: "probing", lost, askedAt: at }, effects: [{ do: "check_route", url: lost.url }] };
}

function check({ round, grant, grantedAt }: Of<"joining" | "waiting">, detail: string | undefined): Next {
  return {
    state: { phase: "checking", detail, round, grant, grantedAt },
    effects: [{ do: "disconnect" }, { do: "check_route", url: grant.url }],
  };
}

/** The gateway is reachable: a connection that was open and stayed silent is no upgrade that failed. */
function unansweredOf({ round }: Of<"checking">): ClientFailureCode {
  return round.chain.browser_ws_ready === undefined
    ? "terminal_gateway_upgrade_failed"
    : "terminal_ui_connecting_stuck";
}

/** What nobody but this client knows is reported to the api, once it is shown. */
function notice(
  { round, grant }: Of<"checking" | "waiting">,
  code: ClientFailureCode,
  { detail, at }: { detail?: string; at: number },
): Next {
  const failure = noticedFailure(code, {
    ...(detail ? { why: detail } : {}),
    correlationId: grant.correlationId,
  });
  const next = disconnecting(failOrPause({ round, failure, at }));
  const isLasting = next.state.phase === "failed" || round.lost?.attempt === REPORTED_ATTEMPT;
  if (isLasting) next.effects.push({ do: "report", sessionId: grant.sessionId, failure });
  return next;
}

function failOrPause({ round, failure, at }: { round: Round; failure: Failure; at: number }): Next {
  const { shell, lost } = round;
  const chain = { failed: at - round.askedAt, ...round.chain };
  if (!lost || remedyOf(failure) !== "same") return fail(failure, shell, chain);
  const cause = failure.code === "terminal_public_route_missing" ? "unresponsive" : lost.cause;
  return pause({ ...lost, cause, failure }, at);
}

type Loss = { at: number; cause: Lost["cause"]; failure?: Failure };

function lose({ shell, url, since, attempt }: Open, { at, cause, failure }: Loss): Next {
  const before = at - since >= SETTLED_MS ? 0 : attempt;
  return pause({ shell, url, since: at, attempt: before, cause, failure }, at);
}

/** Until the next try, or until somebody stops it. */
function pause(lost: Lost, at: number): Next {
  const next = nextTry(lost);
  return stay({ phase: "pausing", lost: next, until: at + reconnectPauseMs(next.attempt) });
}

const nextTry = (lost: Lost): Lost => ({ ...lost, attempt: lost.attempt + 1 });

function fail(failure: Failure, shell: string | undefined, chain: Chain): Next {
  const stays = remedyOf(failure) === "same" || remedyOf(failure) === "take_back";
  return { state: { phase: "failed", failure, shell: stays ? shell : undefined, chain }, effects: [] };
}

function ended({ code, signal }: Exit): Next {
  return { state: { phase: "ended", exit: { code, signal } }, effects: [{ do: "disconnect" }] };
}

function disconnecting({ state, effects }: Next): Next {
  return { state, effects: [{ do: "disconnect" }, ...effects] };
}

function reached(round: Round, step: ChainStep, ms: number): Round {
  return { ...round, chain: { ...round.chain, [step]: Math.max(0, ms) } };
}
