// The states of a terminal on this page, what may happen to it, and what is to be done: the words of
// connecting.ts. Times are milliseconds of one clock.

import type { ChainStep, NodeAway, ServerFrame } from "@holdfast/contracts/terminal-frames";
import type { Failure } from "./failures.ts";

/** What a token was given for. */
export type Grant = {
  token: string;
  url: string;
  sessionId: string;
  correlationId: string;
  deadlineSeconds: number;
};

/** When each step was reached, in ms since a person or a loss asked for it. */
export type Chain = Partial<Record<ChainStep, number>>;

/** A terminal that was there, on its way back. */
export type Lost = {
  shell: string;
  /** Of the gateway that had it. */
  url: string;
  since: number;
  /** Which try is next, or under way: from 1 on. */
  attempt: number;
  /** `unresponsive`: the gateway does not answer. `closed`: the connection ended, and no more is known. */
  cause: "unresponsive" | "closed";
  /** What somebody said: at the loss, or at the latest try. */
  failure: Failure | undefined;
};

/** One way from the question for a token to a terminal. */
export type Round = {
  /** The shell to come back to; undefined asks for a new one. */
  shell: string | undefined;
  askedAt: number;
  chain: Chain;
  /** Undefined: a person asked for it, and is shown why it fails. */
  lost: Lost | undefined;
};

export type Exit = { code: number | null; signal: string | null };

export type Open = {
  shell: string;
  url: string;
  correlationId: string;
  since: number;
  /** The try that brought it back. */
  attempt: number;
};

export type Connecting =
  /** Before a token is asked for: is the gateway of the lost terminal there? */
  | { phase: "probing"; lost: Lost; askedAt: number }
  | { phase: "asking"; round: Round }
  /** The WebSocket is not open yet. */
  | { phase: "joining"; round: Round; grant: Grant; grantedAt: number }
  /** It never opened: is the gateway there at all? */
  | { phase: "checking"; round: Round; grant: Grant; grantedAt: number }
  /** It is open; the steps arrive. */
  | { phase: "waiting"; round: Round; grant: Grant; grantedAt: number }
  | ({ phase: "ready" } & Open)
  /** The gateway answers, but the node does not; the gateway waits for it. */
  | ({ phase: "unresponsive"; node: { cause: NodeAway; since: string } } & Open)
  /** Lost; tries again by itself. */
  | { phase: "pausing"; lost: Lost; until: number }
  /** A person stopped the tries. */
  | { phase: "stopped"; lost: Lost }
  | { phase: "failed"; failure: Failure; shell: string | undefined; chain: Chain }
  | { phase: "ended"; exit: Exit };
export type Phase = Connecting["phase"];

export type Event =
  | { type: "granted"; grant: Grant; at: number }
  | { type: "refused"; failure: Failure; at: number }
  | { type: "opened"; at: number }
  | { type: "frame"; frame: ServerFrame; at: number }
  | { type: "closed"; detail?: string; at: number }
  /** The gateway was asked, and did not answer in time. */
  | { type: "silent"; at: number }
  | { type: "checked"; reachable: boolean; detail?: string; at: number }
  /** The time of `alarmOf` has come. */
  | { type: "alarm"; at: number }
  /** The network may be back, or the page is looked at again. */
  | { type: "nudge"; at: number }
  | { type: "try_again"; at: number }
  | { type: "stop"; at: number }
  | { type: "new_shell"; at: number };

export type Effect =
  | { do: "ask"; shell: string | undefined }
  | { do: "join"; grant: Grant }
  | { do: "check_route"; url: string }
  | { do: "hang_up" }
  | { do: "report"; sessionId: string; failure: Failure };
