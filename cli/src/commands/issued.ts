// Tokens that end with a person, a session or another token: how many of which kind, and which nodes depend on them.

import { countIssued, type IssuedToken, nodesRejoiningWith } from "@holdfast/contracts/public/issued-tokens";
import { localTime, table } from "../output.ts";

/** A table of what would end. */
export function issuedTable(tokens: readonly IssuedToken[]): string {
  return table(tokens, [
    { title: "kind", of: ({ kind }) => kind.replace("_", " ") },
    { title: "name", of: ({ name }) => name },
    { title: "expires", of: ({ expires_at }) => localTime(expires_at) ?? "never" },
    { title: "id", of: ({ id }) => id },
  ]);
}

/** Lines about tokens that have ended; none when there were none. */
export function endedLines(tokens: readonly IssuedToken[]): string[] {
  return tokens.length === 0 ? [] : [`Ended: ${countIssued(tokens)}.`, ...rejoinLines(tokens)];
}

/** A running node keeps running, but after a rebuild it needs a valid token. */
export function rejoinLines(tokens: readonly IssuedToken[]): string[] {
  const nodes = nodesRejoiningWith(tokens);
  if (nodes.length === 0) return [];
  return [
    "These nodes cannot enroll again after a rebuild until they get a new bootstrap token:",
    ...nodes.map((name) => `  holdfast node token create --bootstrap --node ${name}`),
  ];
}
