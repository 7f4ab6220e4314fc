// The result of an audit event as shape and title.

import type { AuditResult } from "@holdfast/contracts/endpoints/audit";
import { auditResultTitles } from "@holdfast/contracts/state-titles";
import { marksOf } from "../../design/marks.ts";

export const resultMarks = marksOf<AuditResult>(auditResultTitles, {
  allowed: "ok",
  denied: "degraded",
  failed: "failed",
});
