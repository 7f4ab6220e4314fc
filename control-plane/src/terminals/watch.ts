// What the api's requests have of terminals: they publish that one changed or is to close, have lost access looked for at
// once, and wait for an end.

import type { Log } from "@holdfast/service/log";
import type { Sql } from "../database/connect.ts";
import { createAwaiting } from "../mechanisms/awaiting.ts";
import type { Signals } from "../mechanisms/signals.ts";
import { selectEnds } from "./queries.ts";

export const END_LOST_TERMINALS = "end-lost-terminals";

export type TerminalWatch = {
  /** After the commit: open pages read it again. */
  changed(sessionId: string): void;
  /** After the commit: it is to close. */
  closing(sessionIds: readonly string[]): void;
  /** After the commit: somebody may have lost access. Without it the job's next turn finds it seconds later. */
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
