// Runs what terminals need in each api process: those whose access is lost are asked to close, and the
// gateways that follow this process are told which are to close, at once and again until they have.

import type { ServiceNews } from "@holdfast/contracts/service-endpoints";
import type { Log } from "@holdfast/service/log";
import type { Sql } from "../database/connect.ts";
import type { Signals } from "../signals/signals.ts";
import { createAwaiting } from "../tasks/awaiting.ts";
import { runPeriodically } from "../worker/periodic.ts";
import { endLostAccess } from "./access.ts";
import { selectClosing, selectEnds } from "./queries.ts";

export type TerminalWatch = {
  /** After the commit: open pages read it again. */
  changed(sessionId: string): void;
  /** After the commit: it is to close. */
  closing(sessionIds: readonly string[]): void;
  /** After the commit: somebody may have lost access. Without it the periodic look finds it seconds later. */
  look(): void;
  /** Resolves when the terminal has ended, or the time is over. */
  ended(sessionId: string, options: { waitMs: number; signal?: AbortSignal }): Promise<void>;
  stop(): Promise<void>;
};

const LOOK_SECONDS = 2;

export function watchTerminals(options: {
  system: Sql;
  signals: Signals;
  tell(lines: readonly ServiceNews[]): void;
  log: Log;
}): TerminalWatch {
  const { system, signals, tell, log } = options;

  const closing = (ids: readonly string[]) => {
    signals.publish("terminal_closing", ids);
    signals.publish("terminal", ids);
  };
  const endWhatIsLost = async () => closing(await endLostAccess(system));
  const soon = (work: () => Promise<void>) => () => {
    work().catch((error: unknown) => log.debug({ err: error }, "terminals wait for their next turn"));
  };

  const ends = [
    signals.subscribe("allocation", soon(endWhatIsLost)),
    signals.subscribe("node_standing", soon(endWhatIsLost)),
    signals.subscribe("terminal_closing", (ids) => soon(async () => tell(await selectClosing(system, ids)))()),
  ];
  const periodic = runPeriodically({
    name: "terminals",
    seconds: LOOK_SECONDS,
    log,
    work: async () => {
      await endWhatIsLost();
      tell(await selectClosing(system, null));
    },
  });

  const awaiting = createAwaiting({ sql: system, signals, log, topic: "terminal", read: selectEnds });

  return {
    changed: (id) => signals.publish("terminal", [id]),
    closing,
    look: soon(endWhatIsLost),
    ended: (id, options) => awaiting.changed({ id, revision: undefined }, { ...options, until: "end" }),
    async stop() {
      for (const end of ends) end();
      await Promise.all([periodic.stop(), awaiting.stop()]);
    },
  };
}
