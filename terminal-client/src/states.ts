// The states of a terminal at its client, what can happen to it, and what has to be done: the types of state.ts. Times are
// milliseconds of one clock.

import type { ChainStep, NodeAway, ServerFrame } from "@holdfast/contracts/terminal/frames";
import type { Failure } from "./failures.ts";

/** What a token was granted for. */
export type Grant = {
  token: string;
  url: string;
  sessionId: string;
  correlationId: string;
  deadlineSeconds: number;
};

/** When each step was reached, in ms since the terminal was requested or lost. */
export type Chain = Partial<Record<ChainStep, number>>;

/** A terminal that was open, and is being reconnected. */
export type Lost = {
  shell: string;
  /** Of the gateway that had it. */
  url: string;
  since: number;
  /** Which try is next, or under way: from 1 on. */
  attempt: number;
  /** `unresponsive`: the gateway does not answer. `closed`: the connection ended, and no more is known. */
  cause: "unresponsive" | "closed";
  /** What was reported: at the loss, or at the latest try. */
  failure: Failure | undefined;
};

/** One way from the request for a token to a terminal. */
export type Round = {
  /** The shell to return to; undefined asks for a new one. */
  shell: string | undefined;
  askedAt: number;
  chain: Chain;
  /** Undefined: a person requested it, and sees why it fails. */
  lost: Lost | undefined;
};

type Granted = { round: Round; grant: Grant; grantedAt: number };

export type Exit = { code: number | null; signal: string | null };

export type Open = {
  shell: string;
  url: string;
  correlationId: string;
  since: number;
  /** The try that brought it back; 0: it was not lost. */
  attempt: number;
};

export type State =
  /** Before a token is requested: does the gateway of the lost terminal answer? */
  | { phase: "probing"; lost: Lost; askedAt: number }
  | { phase: "asking"; round: Round }
  /** The WebSocket is not open yet. */
  | ({ phase: "joining" } & Granted)
  /** It did not open, or nothing came over it: does the gateway answer at all? `detail`: what is known of the socket. */
  | ({ phase: "checking"; detail: string | undefined } & Granted)
  /** It is open; the steps arrive. */
  | ({ phase: "waiting" } & Granted)
  | ({ phase: "ready" } & Open)
  /** The gateway answers, but the node does not; the gateway waits for it. */
  | ({ phase: "unresponsive"; node: { cause: NodeAway; since: string } } & Open)
  /** Lost; the next try starts by itself. */
  | { phase: "pausing"; lost: Lost; until: number }
  /** A person stopped the tries. */
  | { phase: "stopped"; lost: Lost }
  | { phase: "failed"; failure: Failure; shell: string | undefined; chain: Chain }
  | { phase: "ended"; exit: Exit };
export type Phase = State["phase"];

export type Event =
  | { type: "granted"; grant: Grant; at: number }
  | { type: "refused"; failure: Failure; at: number }
  | { type: "opened"; at: number }
  | { type: "frame"; frame: ServerFrame; at: number }
  | { type: "closed"; detail?: string; at: number }
  /** The gateway did not answer a ping on the open connection in time. */
  | { type: "silent"; at: number }
  | { type: "checked"; reachable: boolean; detail?: string; at: number }
  /** The time of `alarmOf` has come. */
  | { type: "alarm"; at: number }
  /** The network may be back, or somebody looks at the terminal again. */
  | { type: "nudge"; at: number }
  | { type: "try_again"; at: number }
  | { type: "stop"; at: number }
  | { type: "new_shell"; at: number };

export type Effect =
  | { do: "request_token"; shell: string | undefined }
  | { do: "connect"; grant: Grant }
  | { do: "check_route"; url: string }
  /** Ends the connection and whatever request is under way. */
  | { do: "disconnect" }
  | { do: "report"; sessionId: string; failure: Failure };

export type Next = { state: State; effects: Effect[] };
