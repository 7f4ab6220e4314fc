// How a terminal comes up and comes back: every state, every event, what follows. Nothing here touches
// a socket or a clock; connection.ts does what the effects say. Times are milliseconds of one clock.

import type { ReadinessStep, ServerFrame } from "@holdfast/contracts/terminal-frames";
import { type Failure, noticed, ofFrame, remedyOf } from "./failures.ts";

/** What a token was given for. */
export type Grant = {
  token: string;
  url: string;
  sessionId: string;
  correlationId: string;
  deadlineSeconds: number;
};

/** When each step was reached, in ms since a person or a loss asked for it. */
export type Chain = Partial<Record<ReadinessStep, number>>;

/** One way from the question for a token to a terminal. */
type Round = {
  /** The shell to come back to; undefined asks for a new one. */
  shell: string | undefined;
  askedAt: number;
  /** 0: a person asked for it. More: after a loss, by itself. */
  attempt: number;
  chain: Chain;
};

export type Exit = { code: number | null; signal: string | null };

export type Connecting =
  | { phase: "asking"; round: Round }
  /** The WebSocket is not open yet. */
  | { phase: "joining"; round: Round; grant: Grant; grantedAt: number }
  /** It never opened: is the gateway there at all? */
  | { phase: "checking"; round: Round; grant: Grant; grantedAt: number }
  /** It is open; the steps arrive. */
  | { phase: "waiting"; round: Round; grant: Grant; grantedAt: number }
  | { phase: "ready"; shell: string; correlationId: string; since: number; attempt: number }
  /** Lost; tries again by itself. */
  | { phase: "pausing"; shell: string; attempt: number; until: number; failure: Failure | undefined }
  | { phase: "failed"; failure: Failure; shell: string | undefined; chain: Chain }
  | { phase: "ended"; exit: Exit };
export type Phase = Connecting["phase"];

export type Event =
  | { type: "granted"; grant: Grant; at: number }
  | { type: "refused"; failure: Failure; at: number }
  | { type: "opened"; at: number }
  | { type: "frame"; frame: ServerFrame; at: number }
  | { type: "closed"; detail?: string; at: number }
  | { type: "checked"; reachable: boolean; detail?: string; at: number }
  /** The time of `alarmOf` has come. */
  | { type: "alarm"; at: number }
  | { type: "try_again"; at: number }
  | { type: "new_shell"; at: number };

export type Effect =
  | { do: "ask"; shell: string | undefined }
  | { do: "join"; grant: Grant }
  | { do: "check_route"; grant: Grant }
  | { do: "hang_up" }
  | { do: "report"; sessionId: string; failure: Failure };

type Next = { state: Connecting; effects: Effect[] };

/** Pauses before the tries that nobody has to ask for. */
export const PAUSES_MS = [1_000, 3_000, 7_000] as const;
/** A terminal that held so long was a good one: the next loss starts to count anew. */
const SETTLED_MS = 10_000;
/** Beyond the time that the server promised. */
const GRACE_MS = 2_000;
/** For the token, about which nothing was promised yet. */
const ASKING_MS = 17_000;
/** So much of the promised time may pass before the socket is open; the rest is to find out why not. */
const JOINING_SHARE = 0.6;

export function begin(shell: string | undefined, at: number): Next {
  return ask({ shell, askedAt: at, attempt: 0, chain: {} });
}

export function step(state: Connecting, event: Event): Next {
  const cell = table[state.phase][event.type] as (state: Connecting, event: Event) => Next;
  return cell(state, event);
}

/** When time itself is an event. */
export function alarmOf(state: Connecting): number | undefined {
  switch (state.phase) {
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
    case "failed":
    case "ended":
      return undefined;
  }
}

type Of<P extends Phase> = Extract<Connecting, { phase: P }>;
type On<E extends Event["type"]> = Extract<Event, { type: E }>;
type Table = { [P in Phase]: { [E in Event["type"]]: (state: Of<P>, event: On<E>) => Next } };

const stay = (state: Connecting): Next => ({ state, effects: [] });
const anew = (_: Connecting, { at }: { at: number }): Next => hangingUp(begin(undefined, at));

const table: Table = {
  asking: {
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
    alarm: ({ round }, { at }) => failOrPause({ round, failure: noticed("terminal_ui_connecting_stuck", {}), at }),
    new_shell: anew,
    opened: stay,
    frame: stay,
    closed: stay,
    checked: stay,
    try_again: stay,
  },
  joining: {
    opened: ({ round, ...rest }, { at }) => ({
      state: { ...rest, phase: "waiting", round: reached(round, "browser_ws_ready", at - round.askedAt) },
      effects: [],
    }),
    closed: (state) => check(state),
    alarm: (state) => check(state),
    new_shell: anew,
    granted: stay,
    refused: stay,
    frame: stay,
    checked: stay,
    try_again: stay,
  },
  checking: {
    checked: (state, { reachable, detail, at }) =>
      seen(state, reachable ? "terminal_gateway_upgrade_failed" : "terminal_public_route_missing", { detail, at }),
    alarm: (state, { at }) => seen(state, "terminal_public_route_missing", { at }),
    new_shell: anew,
    granted: stay,
    refused: stay,
    opened: stay,
    frame: stay,
    closed: stay,
    try_again: stay,
  },
  waiting: {
    frame: (state, { frame, at }) => whileWaiting(state, frame, at),
    closed: (state, { detail, at }) => seen(state, "terminal_gateway_upgrade_failed", { detail, at }),
    alarm: (state, { at }) => seen(state, "terminal_ui_connecting_stuck", { at }),
    new_shell: anew,
    granted: stay,
    refused: stay,
    opened: stay,
    checked: stay,
    try_again: stay,
  },
  ready: {
    frame: (state, { frame, at }) => whileReady(state, frame, at),
    closed: (state, { at }) => pause(state.shell, lossesOf(state, at), undefined, at),
    new_shell: anew,
    granted: stay,
    refused: stay,
    opened: stay,
    checked: stay,
    alarm: stay,
    try_again: stay,
  },
  pausing: {
    alarm: (state, { at }) => askAgain(state, at),
    try_again: (state, { at }) => askAgain(state, at),
    new_shell: anew,
    granted: stay,
    refused: stay,
    opened: stay,
    frame: stay,
    closed: stay,
    checked: stay,
  },
  failed: {
    try_again: ({ shell }, { at }) => begin(shell, at),
    new_shell: anew,
    granted: stay,
    refused: stay,
    opened: stay,
    frame: stay,
    closed: stay,
    checked: stay,
    alarm: stay,
  },
  ended: {
    try_again: anew,
    new_shell: anew,
    granted: stay,
    refused: stay,
    opened: stay,
    frame: stay,
    closed: stay,
    checked: stay,
    alarm: stay,
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
          correlationId: grant.correlationId,
          since: at,
          attempt: round.attempt,
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

function whileReady(state: Of<"ready">, frame: ServerFrame, at: number): Next {
  switch (frame.type) {
    case "error": {
      const failure = ofFrame(frame);
      // The gateway goes, the shell stays: nobody has to be asked.
      if (failure.code === "terminal_gateway_draining")
        return hangingUp(pause(state.shell, lossesOf(state, at), failure, at));
      return hangingUp(fail(failure, state.shell, {}));
    }
    case "exit":
      return ended(frame);
    case "status":
    case "ready":
    case "paused":
    case "unresponsive":
    case "responsive":
    case "input":
    case "ack":
    case "pong":
      return stay(state);
  }
}

function ask(round: Round): Next {
  return { state: { phase: "asking", round }, effects: [{ do: "ask", shell: round.shell }] };
}

function askAgain({ shell, attempt }: Of<"pausing">, at: number): Next {
  return ask({ shell, askedAt: at, attempt, chain: {} });
}

function check({ round, grant, grantedAt }: Of<"joining">): Next {
  return {
    state: { phase: "checking", round, grant, grantedAt },
    effects: [{ do: "hang_up" }, { do: "check_route", grant }],
  };
}

type Seen = Parameters<typeof noticed>[0];

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
  if (next.state.phase === "failed") next.effects.push({ do: "report", sessionId: grant.sessionId, failure });
  return next;
}

function failOrPause({ round, failure, at }: { round: Round; failure: Failure; at: number }): Next {
  const { shell, attempt, chain } = round;
  if (shell !== undefined && attempt > 0 && remedyOf(failure) === "same")
    return pause(shell, attempt, failure, at, chain);
  return fail(failure, shell, chain);
}

/** After so many tries by itself, the failure is shown. */
function pause(shell: string, attempt: number, failure: Failure | undefined, at: number, chain: Chain = {}): Next {
  const wait = PAUSES_MS[attempt];
  if (wait === undefined) return fail(failure ?? noticed("terminal_gateway_upgrade_failed", {}), shell, chain);
  return { state: { phase: "pausing", shell, attempt: attempt + 1, until: at + wait, failure }, effects: [] };
}

function fail(failure: Failure, shell: string | undefined, chain: Chain): Next {
  const stays = remedyOf(failure) === "same" || remedyOf(failure) === "take_back";
  return { state: { phase: "failed", failure, shell: stays ? shell : undefined, chain }, effects: [] };
}

function ended({ code, signal }: Exit): Next {
  return { state: { phase: "ended", exit: { code, signal } }, effects: [{ do: "hang_up" }] };
}

function lossesOf({ since, attempt }: Of<"ready">, at: number): number {
  return at - since >= SETTLED_MS ? 0 : attempt;
}

function hangingUp({ state, effects }: Next): Next {
  return { state, effects: [{ do: "hang_up" }, ...effects] };
}

function reached(round: Round, step: ReadinessStep, ms: number): Round {
  return { ...round, chain: { ...round.chain, [step]: Math.max(0, ms) } };
}
