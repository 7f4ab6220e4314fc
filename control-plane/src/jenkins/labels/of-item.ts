// The label expression of a queued item, as Jenkins reports it. Its queue has no field for it in all versions: jobs have
// `labelExpression`, plugins add `assignedLabel`, and for everything else it is quoted in `why`. Pure.

export type QueuedLabel = {
  why?: string | null | undefined;
  assignedLabel?: { name?: string | null | undefined } | null | undefined;
  task?: { labelExpression?: string | null | undefined } | null | undefined;
};

/** As the English messages of Jenkins quote it, in the quotation marks of old and new versions. */
const quoted = String.raw`(?:‘(?<curly>[^‘’]+)’|'(?<straight>[^']+)'|(?<bare>[^\s;‘'][^;]*?))`;
const messages = [
  `There are no nodes with the label ${quoted}`,
  `All nodes of label ${quoted} are offline`,
  `Waiting for next available executor on ${quoted}`,
];
// Several causes are joined by semicolons.
const patterns = messages.map((message) => new RegExp(String.raw`(?:^|;\s*)${message}\s*(?:;|$)`, "u"));

/** Undefined: it has none, or Jenkins does not report it (yet). */
export function labelOf({ why, assignedLabel, task }: QueuedLabel): string | undefined {
  const named = [assignedLabel?.name, task?.labelExpression].find((one) => one?.trim());
  if (named) return named.trim();
  for (const pattern of patterns) {
    const { curly, straight, bare } = pattern.exec(why ?? "")?.groups ?? {};
    const found = curly ?? straight ?? bare;
    if (found) return found.trim();
  }
  return undefined;
}
