// The transition table of terminals: what each event does in each state. Nothing else decides a state; events.ts writes
// what comes out of here, and which states are live follows from the table. A failed connection does not end an open
// shell.

import type { TerminalState } from "@holdfast/contracts/endpoints/terminals";
import { isOneOf, statesWithExit } from "../mechanisms/transition-sql.ts";

export const terminalTransitions = [
  /** The PTY is up, and its stream is at the gateway. */
  "ready",
  /** A client did not get its terminal, or lost it; an open shell may go on. */
  "failed",
  /** The terminal failed, and its shell is gone. */
  "broken",
  /** The shell ended, or was ended on purpose. */
  "closed",
  /** Its token was never used. */
  "unused",
] as const;
export type TerminalTransition = (typeof terminalTransitions)[number];

const outcomes: Record<TerminalState, Record<TerminalTransition, TerminalState>> = {
  opening: {
    ready: "open",
    // The client has got the failure: nobody would use a shell that starts later.
    failed: "failed",
    broken: "failed",
    closed: "closed",
    unused: "closed",
  },
  open: {
    ready: "open",
    failed: "open",
    broken: "failed",
    closed: "closed",
    unused: "open",
  },
  closed: {
    ready: "closed",
    failed: "closed",
    broken: "closed",
    closed: "closed",
    unused: "closed",
  },
  failed: {
    ready: "failed",
    failed: "failed",
    broken: "failed",
    closed: "failed",
    unused: "failed",
  },
};

export function terminalOutcome(state: TerminalState, transition: TerminalTransition): TerminalState {
  return outcomes[state][transition];
}

const liveStates = statesWithExit(outcomes, (state) => state);

export function hasEnded(state: TerminalState): boolean {
  return !liveStates.includes(state);
}

/** Of a row of terminal_sessions: it is opening or open. */
export const terminalIsLive = (row = "terminal_sessions") => isOneOf(`${row}.state`, liveStates);
