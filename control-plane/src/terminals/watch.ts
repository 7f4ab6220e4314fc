// What request handlers of the api use of terminals: publish that one changed or is to close, check for lost access at
// once, and wait for the end of one.

import type { Log } from "@holdfast/service/log";
import type { Sql } from "../database/connect.ts";
import { createAwaiting } from "../mechanisms/awaiting.ts";
import type { Signals } from "../mechanisms/signals.ts";
import { selectEnds } from "./queries.ts";

export const END_LOST_TERMINALS = "end-lost-terminals";

export type TerminalWatch = {
  /** Call after the commit: open pages read the terminal again. */
  changed(sessionId: string): void;
  /** Call after the commit: the gateways close these terminals. */
  closing(sessionIds: readonly string[]): void;
  /** Call after the commit if somebody may have lost access. Otherwise the job finds it at its next turn, seconds later. */
  look(): void;
  /** Resolves when the terminal has ended, or the time is over. */
  ended(sessionId: string, options: { waitMs: number; signal?: AbortSignal }): Promise<void>;
  stop(): Promise<void>;
};

export function watchTerminals(options: {
  system: Sql;
  signals: Signals;
  wake(job: string): void;
  log: Log;
}): TerminalWatch {
  const { system, signals, wake, log } = options;
  const awaiting = createAwaiting({ sql: system, signals, log, topic: "terminal", read: selectEnds });
  return {
    changed: (id) => signals.publish("terminal", [id]),
    closing(ids) {
      signals.publish("terminal_closing", ids);
      signals.publish("terminal", ids);
    },
    look: () => wake(END_LOST_TERMINALS),
    ended: (id, options) => awaiting.changed({ id, revision: undefined }, { ...options, until: "end" }),
    stop: awaiting.stop,
  };
}
