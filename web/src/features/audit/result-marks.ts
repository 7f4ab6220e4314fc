// The results of audit events as states: shape and word.

import type { AuditResult } from "@holdfast/contracts/endpoints/audit";
import type { State } from "../../design/StatusMark.tsx";

export const resultMarks: Record<AuditResult, { state: State; word: string }> = {
  allowed: { state: "ok", word: "Allowed" },
  denied: { state: "degraded", word: "Denied" },
  failed: { state: "failed", word: "Failed" },
};
