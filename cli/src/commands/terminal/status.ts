// Shows the states of a terminal's client to the person: the steps while it opens, why it was lost, and a line at the bottom
// that says when the next try comes, and the keys.

import { readinessSteps } from "@holdfast/contracts/terminal/frames";
import { terminalConnectionTitles } from "@holdfast/contracts/words/state-titles";
import type { Lost, State } from "@holdfast/terminal-client/states";
import { messageOf } from "./failure.ts";
import type { LocalTerminal } from "./local-terminal.ts";
import { noteNodeAway } from "./node-away.ts";
import type { Progress } from "./progress.ts";

type StatusOptions = {
  local: Pick<LocalTerminal, "note" | "status">;
  progress: Progress;
  /** Typed bytes that are kept for the shell. */
  unconfirmed(): number;
  /** Something was written over what the shell shows. */
  redraw(): void;
};

export type ShowState = ((state: State) => void) & {
  /** Removes what stands for the moment only. */
  end(): void;
};

const reconnectKeys = "Ctrl-R: now · Ctrl-C: stop";
const TICK_MS = 1_000;

export function showStates({ local, progress, unconfirmed, redraw }: StatusOptions): ShowState {
  const nodeAway = noteNodeAway(local, redraw);
  let ticking: NodeJS.Timeout | undefined;
  let isOpening = true;
  let isLost = false;
  /** The latest reason that was noted. */
  let noted: string | undefined;

  const line = (text: string) => {
    const kept = unconfirmed();
    local.status(`${text} · ${reconnectKeys}${kept > 0 ? ` · ${kept} typed bytes kept` : ""}`);
  };
  const clearLine = () => {
    clearInterval(ticking);
    if (isLost) local.status(undefined);
  };
  const endProgress = () => {
    if (isOpening) progress.clear();
    isOpening = false;
  };
  const noteLoss = (lost: Lost) => {
    const sentence = lossSentence(lost);
    if (sentence === noted) return;
    clearLine();
    noted = sentence;
    local.note(sentence);
  };
  const countDown = ({ lost, until }: Extract<State, { phase: "pausing" }>) => {
    const show = () => {
      const left = Math.max(0, Math.ceil((until - performance.now()) / 1_000));
      line(`${stateWord(lost)}. Try ${lost.attempt} in ${left} s`);
    };
    show();
    ticking = setInterval(show, TICK_MS);
  };
  const connected = (state: Extract<State, { phase: "ready" | "unresponsive" }>) => {
    clearLine();
    endProgress();
    if (isLost) {
      local.note("Reconnected.");
      redraw();
    }
    isLost = false;
    noted = undefined;
    nodeAway(state.phase === "unresponsive" ? state.node : undefined);
  };

  const show = (state: State) => {
    clearInterval(ticking);
    if (state.phase === "ready" || state.phase === "unresponsive") return connected(state);
    if (state.phase === "failed" || state.phase === "ended") {
      clearLine();
      return endProgress();
    }
    const lost = "round" in state ? state.round.lost : state.lost;
    if (!lost) {
      const { chain } = (state as Extract<State, { phase: "asking" }>).round;
      const latest = readinessSteps.findLast((step) => chain[step] !== undefined);
      return latest && progress.reached(latest);
    }
    if (state.phase === "pausing") {
      noteLoss(lost);
      isLost = true;
      return countDown(state);
    }
    isLost = true;
    line(`${terminalConnectionTitles.reconnecting.title}, try ${lost.attempt}`);
  };
  const end = () => {
    clearLine();
    endProgress();
  };
  return Object.assign(show, { end });
}

const stateWord = ({ cause, failure }: Lost) =>
  terminalConnectionTitles[cause === "unresponsive" && !failure ? "unresponsive" : "disconnected"].title;

function lossSentence(lost: Lost): string {
  const { cause, failure } = lost;
  if (failure) return `${stateWord(lost)}: ${messageOf(failure)}`;
  const what = cause === "unresponsive" ? "the gateway does not answer" : "the connection to the gateway broke";
  return `${stateWord(lost)}: ${what}.`;
}
