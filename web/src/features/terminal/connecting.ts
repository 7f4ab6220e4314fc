// How a terminal comes up and comes back: every state, every event, what follows. Nothing here touches
// a socket or a clock; connection.ts does what the effects say. Times are milliseconds of one clock.

import { mayFindShellAgain } from "@holdfast/contracts/reasons/terminal";
import type { ChainStep, ServerFrame } from "@holdfast/contracts/terminal-frames";
import { asksGatewayFirst, reconnectPauseMs } from "@holdfast/contracts/terminal-reconnect";
import type { Chain, Connecting, Effect, Event, Exit, Lost, Open, Phase, Round } from "./connecting-states.ts";
import { type Failure, noticed, ofFrame, remedyOf } from "./failures.ts";

type Next = { state: Connecting; effects: Effect[] };

/** A terminal that held so long was a good one: the next loss starts to count anew. */
const SETTLED_MS = 10_000;
/** Beyond the time that the server promised. */
const GRACE_MS = 2_000;
/** For the token, about which nothing was promised yet. */
const ASKING_MS = 17_000;
/** For the gateway to say that it is there. */
const PROBING_MS = 5_000;
/** So much of the promised time may pass before the socket is open; the rest is to find out why not. */
const JOINING_SHARE = 0.6;
/** What keeps a lost terminal away is reported once, when it does not pass by itself. */
const REPORTED_ATTEMPT = 4;

export function begin(shell: string | undefined, at: number): Next {
  return ask({ shell, askedAt: at, chain: {}, lost: undefined });
}

export function step(state: Connecting, event: Event): Next {
  const cell = table[state.phase][event.type] as (state: Connecting, event: Event) => Next;
  return cell(state, event);
}

/** When time itself is an event. */
export function alarmOf(state: Connecting): number | undefined {
  switch (state.phase) {
    case "probing":
      return state.askedAt + PROBING_MS;
    case "asking":
      return state.round.askedAt + ASKING_MS;
    case "joining":
      return state.grantedAt + state.grant.deadlineSeconds * 1_000 * JOINING_SHARE;
    case "checking":
    case "waiting":
      return state.grantedAt + state.grant.deadlineSeconds * 1_000 + GRACE_MS;
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

type Of<P extends Phase> = Extract<Connecting, { phase: P }>;
type On<E extends Event["type"]> = Extract<Event, { type: E }>;
type Trying = Of<"asking" | "joining" | "checking" | "waiting">;
type Table = { [P in Phase]: { [E in Event["type"]]: (state: Of<P>, event: On<E>) => Next } };

const stay = (state: Connecting): Next => ({ state, effects: [] });
const anew = (_: Connecting, { at }: { at: number }): Next => hangingUp(begin(undefined, at));

/** Of a try that is under way: only those after a loss can be hurried or stopped. */
const hurry = (state: Trying, { at }: { at: number }): Next =>
  state.round.lost ? hangingUp(probe(state.round.lost, at)) : stay(state);
const halt = (state: Trying): Next =>
  state.round.lost ? hangingUp(stay({ phase: "stopped", lost: state.round.lost })) : stay(state);

/** What changes nothing, in most states. A new shell is a person's to have at any time. */
const still = {
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
  new_shell: anew,
} as const;

const open = {
  ...still,
  frame: (state: Of<"ready" | "unresponsive">, { frame, at }: On<"frame">) => whileOpen(state, frame, at),
  closed: (state: Of<"ready" | "unresponsive">, { at }: On<"closed">) => lose(state, { at, cause: "closed" }),
  silent: (state: Of<"ready" | "unresponsive">, { at }: On<"silent">) =>
    hangingUp(lose(state, { at, cause: "unresponsive" })),
} as const;

const table: Table = {
  probing: {
    ...still,
    checked: ({ lost }, { reachable, at }) =>
      reachable ? askFor(lost, at) : pause({ ...lost, cause: "unresponsive", failure: undefined }, at),
    alarm: ({ lost }, { at }) => hangingUp(pause({ ...lost, cause: "unresponsive", failure: undefined }, at)),
    try_again: ({ lost }, { at }) => hangingUp(probe(lost, at)),
    stop: ({ lost }) => hangingUp(stay({ phase: "stopped", lost })),
  },
  asking: {
    ...still,
    granted: ({ round }, { grant, at }) => ({
      state: {
        phase: "joining",
        round: reached(round, "token_ready", at - round.askedAt),
        grant,
        grantedAt: at,
      },
      effects: [{ do: "join", grant }],
    }),
    refused: ({ round }, { failure, at }) => failOrPause({ round, failure, at }),
    alarm: ({ round }, { at }) =>
      hangingUp(failOrPause({ round, failure: noticed("terminal_ui_connecting_stuck", {}), at })),
    try_again: hurry,
    stop: halt,
  },
  joining: {
    ...still,
    opened: ({ round, ...rest }, { at }) => ({
      state: { ...rest, phase: "waiting", round: reached(round, "browser_ws_ready", at - round.askedAt) },
      effects: [],
    }),
    closed: (state) => check(state),
    alarm: (state) => check(state),
    try_again: hurry,
    stop: halt,
  },
  checking: {
    ...still,
    checked: (state, { reachable, detail, at }) =>
      seen(state, reachable ? unansweredOf(state) : "terminal_public_route_missing", { detail, at }),
    alarm: (state, { at }) => seen(state, "terminal_public_route_missing", { at }),
    try_again: hurry,
    stop: halt,
  },
  waiting: {
    ...still,
    frame: (state, { frame, at }) => whileWaiting(state, frame, at),
    closed: (state, { detail, at }) => seen(state, "terminal_gateway_upgrade_failed", { detail, at }),
    silent: (state) => check(state),
    alarm: (state, { at }) => seen(state, "terminal_ui_connecting_stuck", { at }),
    try_again: hurry,
    stop: halt,
  },
  ready: open,
  unresponsive: open,
  pausing: {
    ...still,
    alarm: ({ lost }, { at }) => retry(lost, at),
    nudge: ({ lost }, { at }) => probe(lost, at),
    try_again: ({ lost }, { at }) => probe(lost, at),
    stop: ({ lost }) => stay({ phase: "stopped", lost }),
  },
  stopped: {
    ...still,
    try_again: ({ lost }, { at }) => probe({ ...lost, attempt: 1 }, at),
  },
  failed: {
    ...still,
    try_again: ({ shell }, { at }) => begin(shell, at),
  },
  ended: {
    ...still,
    try_again: anew,
  },
};

function whileWaiting(state: Of<"waiting">, frame: ServerFrame, at: number): Next {
  const { round, grant } = state;
  switch (frame.type) {
    case "status": {
      // The gateway counts from the token on, this page from the click.
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
      return hangingUp(failOrPause({ round, failure: ofFrame(frame), at }));
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
      const failure = ofFrame(frame);
      // The shell lives on: nobody has to be asked.
      if (mayFindShellAgain(failure.code)) return hangingUp(lose(state, { at, cause: "closed", failure }));
      return hangingUp(fail(failure, shell, {}));
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
  return { state: { phase: "asking", round }, effects: [{ do: "ask", shell: round.shell }] };
}

function askFor(lost: Lost, at: number): Next {
  return ask({ shell: lost.shell, askedAt: at, chain: {}, lost });
}

function retry(lost: Lost, at: number): Next {
  return asksGatewayFirst(lost.attempt) ? probe(lost, at) : askFor(lost, at);
}

/** A person may ask as often as they like: no token is used up by it. */
function probe(lost: Lost, at: number): Next {
  return { state: { phase: "probing", lost, askedAt: at }, effects: [{ do: "check_route", url: lost.url }] };
}

function check({ round, grant, grantedAt }: Of<"joining" | "waiting">): Next {
  return {
    state: { phase: "checking", round, grant, grantedAt },
    effects: [{ do: "hang_up" }, { do: "check_route", url: grant.url }],
  };
}

type Seen = Parameters<typeof noticed>[0];

/** Of a gateway that is reachable: a connection that was open and stayed silent is no upgrade that failed. */
function unansweredOf({ round }: Of<"checking">): Seen {
  return round.chain.browser_ws_ready === undefined
    ? "terminal_gateway_upgrade_failed"
    : "terminal_ui_connecting_stuck";
}

/** What nobody but this page knows is told to the api, once it is shown. */
function seen(
  { round, grant }: Of<"checking" | "waiting">,
  code: Seen,
  { detail, at }: { detail?: string; at: number },
): Next {
  const failure = noticed(code, {
    ...(detail ? { why: detail } : {}),
    correlationId: grant.correlationId,
  });
  const next = hangingUp(failOrPause({ round, failure, at }));
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

/** Until the next try, or until somebody has had enough. */
function pause(lost: Lost, at: number): Next {
  const attempt = lost.attempt + 1;
  return stay({ phase: "pausing", lost: { ...lost, attempt }, until: at + reconnectPauseMs(attempt) });
}

function fail(failure: Failure, shell: string | undefined, chain: Chain): Next {
  const stays = remedyOf(failure) === "same" || remedyOf(failure) === "take_back";
  return { state: { phase: "failed", failure, shell: stays ? shell : undefined, chain }, effects: [] };
}

function ended({ code, signal }: Exit): Next {
  return { state: { phase: "ended", exit: { code, signal } }, effects: [{ do: "hang_up" }] };
}

function hangingUp({ state, effects }: Next): Next {
  return { state, effects: [{ do: "hang_up" }, ...effects] };
}

function reached(round: Round, step: ChainStep, ms: number): Round {
  return { ...round, chain: { ...round.chain, [step]: Math.max(0, ms) } };
}
