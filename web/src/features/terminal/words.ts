// Steps, states and ends of terminals in words.

import type { TerminalSession, TerminalState } from "@holdfast/contracts/endpoints/terminals";
import type { ReadinessStep } from "@holdfast/contracts/terminal/frames";
import type { State as ClientState, Exit, Phase } from "@holdfast/terminal-client/states";
import type { State } from "../../design/values/StatusMark.tsx";

/** While it is waited for, and once it is there. */
export const stepWords: Record<ReadinessStep, { awaited: string; reached: string }> = {
  token_ready: { awaited: "Asking for permission", reached: "Permission given" },
  browser_ws_ready: { awaited: "Reaching the terminal gateway", reached: "Gateway reached" },
  terminal_open_sent: { awaited: "Asking the node for a shell", reached: "Node asked for a shell" },
  node_stream_connected: { awaited: "Waiting for the node's stream", reached: "Node's stream connected" },
  pty_ready: { awaited: "Starting the shell", reached: "Shell started" },
};

const phaseMarks: Record<Phase, { state: State; word: string }> = {
  probing: { state: "moving", word: "Reconnecting" },
  asking: { state: "moving", word: "Connecting" },
  joining: { state: "moving", word: "Connecting" },
  checking: { state: "moving", word: "Connecting" },
  waiting: { state: "moving", word: "Connecting" },
  ready: { state: "ok", word: "Connected" },
  unresponsive: { state: "degraded", word: "Unresponsive" },
  pausing: { state: "degraded", word: "Disconnected" },
  stopped: { state: "ended", word: "Disconnected" },
  failed: { state: "failed", word: "Not connected" },
  ended: { state: "ended", word: "Ended" },
};

export function markOf(state: ClientState): { state: State; word: string } {
  if (state.phase === "pausing" && state.lost.cause === "unresponsive") return phaseMarks.unresponsive;
  if ("round" in state && state.round.lost) return phaseMarks.probing;
  return phaseMarks[state.phase];
}

const terminalMarks: Record<TerminalState, { state: State; word: string }> = {
  opening: { state: "moving", word: "Opening" },
  open: { state: "ok", word: "Attached" },
  closed: { state: "ended", word: "Ended" },
  failed: { state: "failed", word: "Failed" },
};

export function terminalMark(terminal: Pick<TerminalSession, "state" | "attached" | "ending">) {
  if (terminal.ending) return { state: "moving", word: "Ending" } as const;
  if (terminal.state === "open" && !terminal.attached) return { state: "unknown", word: "Detached" } as const;
  return terminalMarks[terminal.state];
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
