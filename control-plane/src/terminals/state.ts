// The life of a terminal: what each event does in each state. Nothing else decides a state; events.ts
// writes what comes out of here. A connection that fails does not end a shell that is there.

import type { TerminalState } from "@holdfast/contracts/endpoints/terminals";

export const terminalTransitions = [
  /** The PTY is up, and its stream is at the gateway. */
  "ready",
  /** A client did not get its terminal, or lost it; a shell that was open may go on. */
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
    // Whoever waited for it was told so: a shell that comes up later would be nobody's.
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

export function hasEnded(state: TerminalState): boolean {
  return state === "closed" || state === "failed";
}
