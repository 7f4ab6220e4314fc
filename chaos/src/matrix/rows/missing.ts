// Rows that nothing can produce yet, and what they need.

import type { Row } from "../row.ts";

const needs = (row: string, missing: string): Row => ({ row, how: "not produced", at: "nowhere", missing });
const RECOVERY = "recovery tokens, which do not exist yet";

export const missingRows: Row[] = [
  needs("D02", RECOVERY),
  needs("D03", RECOVERY),
  needs("D06", "a comparison of the signing CA with the one that the ingress trusts"),
  needs("D09", RECOVERY),
  needs("D12", RECOVERY),
];
