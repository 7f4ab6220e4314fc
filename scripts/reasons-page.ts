// The reference page of all reasons: one table. The runbook of each has everything else that is known about it.

import { type ReasonCode, reasonCodes, reasons } from "@holdfast/contracts/reasons/catalogue";
import { owners } from "@holdfast/contracts/reasons/owners";

export function reasonsPage(): string {
  return [
    "# Reasons",
    "",
    "Generated from `contracts/src/reasons/` by `npm run generate`; do not edit.",
    "",
    "Everything that can be wrong with a node or a terminal. API, page, command line, audit and logs use these codes, and",
    "the signals are the names for alarms. Each code leads to its runbook.",
    "",
    "| code | title | severity | owner | user state | next action |",
    "|---|---|---|---|---|---|",
    ...reasonCodes.map(row),
    "",
  ].join("\n");
}

function row(code: ReasonCode): string {
  const { title, severity, owner, userState, nextAction } = reasons[code];
  const ownerTitle = owner === null ? "nobody" : owners[owner].title;
  return `| [\`${code}\`](../runbooks/${code}.md) | ${title} | ${severity ?? "–"} | ${ownerTitle} | \`${userState}\` | \`${nextAction}\` |`;
}
