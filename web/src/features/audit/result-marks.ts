// The result of an audit event as shape and title.

import type { AuditResult } from "@holdfast/contracts/endpoints/audit";
import { auditResultTitles } from "@holdfast/contracts/words/state-titles";
import { marksOf } from "../../design/values/marks.ts";

export const resultMarks = marksOf<AuditResult>(auditResultTitles, {
  allowed: "ok",
  denied: "degraded",
  failed: "failed",
});
