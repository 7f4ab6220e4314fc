// States and ends of terminals in words. Titles of states are those of the contracts.

import type { TerminalSession } from "@holdfast/contracts/endpoints/terminals";
import {
  terminalConnectionTitles,
  terminalStateShown,
  terminalStateTitles,
} from "@holdfast/contracts/words/state-titles";
import type { State as ClientState, Exit, Phase } from "@holdfast/terminal-client/states";
import { type Mark, marksOf } from "../../design/values/marks.ts";

export const connectionMarks = marksOf<keyof typeof terminalConnectionTitles>(terminalConnectionTitles, {
  connecting: "moving",
  connected: "ok",
  unresponsive: "degraded",
  disconnected: "degraded",
  reconnecting: "moving",
  not_connected: "failed",
  ended: "ended",
});

const phaseMarks: Record<Phase, Mark> = {
  probing: connectionMarks.reconnecting,
  asking: connectionMarks.connecting,
  joining: connectionMarks.connecting,
  checking: connectionMarks.connecting,
  waiting: connectionMarks.connecting,
  ready: connectionMarks.connected,
  unresponsive: connectionMarks.unresponsive,
  pausing: connectionMarks.disconnected,
  stopped: { ...connectionMarks.disconnected, state: "ended" },
  failed: connectionMarks.not_connected,
  ended: connectionMarks.ended,
};

export function markOf(state: ClientState): Mark {
  if (state.phase === "pausing" && state.lost.cause === "unresponsive") return phaseMarks.unresponsive;
  if ("round" in state && state.round.lost) return phaseMarks.probing;
  return phaseMarks[state.phase];
}

const terminalMarks = marksOf<keyof typeof terminalStateTitles>(terminalStateTitles, {
  opening: "moving",
  open: "ok",
  detached: "unknown",
  ending: "moving",
  closed: "ended",
  failed: "failed",
});

export function terminalMark(terminal: Pick<TerminalSession, "state" | "attached" | "ending">): Mark {
  return terminalMarks[terminalStateShown(terminal)];
}

export const inputIsFull = "Not sent: 16 MiB of input wait for this shell already.";

/** Input that the shell has not confirmed, while it may still come to it. */
export function waitingInWords(bytes: number): string {
  return `${bytes} ${bytes === 1 ? "byte" : "bytes"} typed will be sent`;
}

/** The same, once it will not. */
export function unconfirmedInWords(bytes: number): string {
  return bytes === 1
    ? "The last byte typed was not confirmed by the shell: it may not have arrived."
    : `The last ${bytes} bytes typed were not confirmed by the shell: they may not have arrived.`;
}

export function exitInWords({ code, signal }: Exit): string {
  if (signal) return `The shell was ended by ${signal}.`;
  if (code === 0) return "The shell has ended.";
  if (code === null) return "The shell has ended; how is not known.";
  return `The shell has ended with code ${code}.`;
}
