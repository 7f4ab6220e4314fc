// Rows about apps: there are none yet that could fail, so their evidence is injected, as the matrix permits.

import type { Row } from "../row.ts";

const seen = (kind: string, value: string) => ({ kind, value, observer: "app_runtime" });

export const appRows: Row[] = [
  { row: "D18", how: "injected: a status check of an app expired", evidence: [[seen("app_status", "expired")]] },
  {
    row: "D19",
    how: "injected: a status check found the app stopped",
    evidence: [[seen("app_status", "stopped")]],
  },
  {
    row: "D20",
    how: "injected: a status check expired, and the next one found the app running",
    evidence: [[seen("app_status", "expired")], [seen("app_status", "running")]],
  },
  {
    row: "D21",
    how: "injected: the app runs, and requests to its address fail",
    evidence: [[seen("app_status", "running"), seen("app_endpoint", "failed_past_threshold")]],
  },
  {
    row: "D22",
    how: "injected: the app's credential fails again and again",
    evidence: [[seen("app_credential", "failed_repeatedly")]],
  },
].map((one): Row => ({ ...one, at: "database" }));
