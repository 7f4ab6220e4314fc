// What the background jobs of a worker process have at hand.

import type { Log } from "@holdfast/service/log";
import type { OwnProcess } from "@holdfast/service/log-store/own-process";
import type { Sql } from "../database/connect.ts";
import type { JobReports } from "../mechanisms/background/report.ts";
import type { Signals } from "../mechanisms/signals.ts";
import type { Presence } from "../platform/presence.ts";
import type { Policies } from "../policy/live.ts";

export type WorkerContext = {
  /** Sees all organizations. */
  system: Sql;
  signals: Signals;
  log: Log;
  presence: Presence;
  policies: Policies;
  /** The log lines and settings of this process. */
  own: OwnProcess;
  /** Of the jobs of this process. */
  reports(): JobReports;
};
