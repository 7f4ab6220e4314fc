// What the server has sent over streams and the agent has not taken yet. It outlives the streams.

import type { NodeStanding, TaskOffer } from "@holdfast/contracts/node/protocol";
import type { WaitResponse } from "../calls.ts";

export type Inbox = {
  offer(tasks: readonly TaskOffer[], cancel: readonly string[]): void;
  standing(standing: NodeStanding): void;
  /** A stream has been opened, or the server asks for it; undone when one was sent. */
  wantHeartbeat(isWanted: boolean): void;
  /** It should be waited for anew, with what is held and taken by then. */
  again(): void;
  isEmpty(): boolean;
  take(): WaitResponse;
  /** Resolves when something has come, when it is woken, or after that time. */
  next(seconds: number, signal: AbortSignal): Promise<void>;
  wake(): void;
};

type Content = {
  tasks: TaskOffer[];
  cancel: string[];
  standing: NodeStanding | undefined;
  beat: boolean;
  again: boolean;
};

export function createInbox(): Inbox {
  let content = nothing();
  let waiting: (() => void) | undefined;
  const wake = () => {
    waiting?.();
    waiting = undefined;
  };
  return {
    offer(tasks, cancel) {
      content.tasks.push(...tasks);
      content.cancel.push(...cancel);
      wake();
    },
    standing(standing) {
      content.standing = standing;
      wake();
    },
    wantHeartbeat(isWanted) {
      content.beat = isWanted;
      if (isWanted) wake();
    },
    again() {
      content.again = true;
      wake();
    },
    isEmpty() {
      const { tasks, cancel, standing, beat, again } = content;
      return tasks.length + cancel.length === 0 && standing === undefined && !beat && !again;
    },
    take() {
      const { tasks, cancel, standing, beat, again } = content;
      content = nothing();
      return { tasks, cancel, node: standing, beat, again };
    },
    next: (seconds, signal) =>
      new Promise((resolve) => {
        const done = () => {
          clearTimeout(timer);
          signal.removeEventListener("abort", done);
          resolve();
        };
        const timer = setTimeout(done, seconds * 1000);
        signal.addEventListener("abort", done);
        waiting = done;
        if (signal.aborted) done();
      }),
    wake,
  };
}

function nothing(): Content {
  return { tasks: [], cancel: [], standing: undefined, beat: false, again: false };
}
