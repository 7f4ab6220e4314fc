// A terminal in words: its state in a list, and all that is known of it for whoever looks for a correlation id.

import type { TerminalSession } from "@holdfast/contracts/endpoints/terminals";
import { adviceFor } from "@holdfast/contracts/reasons/advice";
import { isTerminalFailure, terminalFailures } from "@holdfast/contracts/reasons/terminal";
import { chainSteps } from "@holdfast/contracts/terminal/frames";
import { terminalStateShown, terminalStateTitles } from "@holdfast/contracts/words/state-titles";
import { ago, localTime, span } from "../../output.ts";

export function stateOf(terminal: TerminalSession): string {
  const { detached_at, failure, exit } = terminal;
  const shown = terminalStateShown(terminal);
  const title = terminalStateTitles[shown].title.toLowerCase();
  const why = failure ? `: ${failure.title} (${failure.code})` : "";
  switch (shown) {
    case "opening":
    case "ending":
      return title;
    case "detached":
      return `${title}${detached_at === null ? "" : ` ${ago(detached_at)}`}${why}`;
    case "closed":
      return exit ? `${title} (${exit.signal ?? `exit code ${exit.code}`})` : `${title}${why}`;
    case "open":
    case "failed":
      return `${title}${why}`;
  }
}

/** Where it failed and who can repair that. */
export function placeOf({ failure }: TerminalSession): string | null {
  return failure && `${failure.hop}, ${failure.owner}`;
}

export function describeTerminal(terminal: TerminalSession): string {
  const { id, username, node_name, opened_by, created_at, correlation_id, chain, failure } = terminal;
  const asked = Date.parse(created_at);
  const steps = chainSteps.flatMap((step) => {
    const reached = chain[step];
    if (!reached) return [];
    return `  ${step.padEnd(22)} ${span(Math.max(0, Date.parse(reached.at) - asked))}  ${reached.correlation_id}`;
  });
  return [
    `Terminal ${id} of ${opened_by} at ${username}@${node_name}: ${stateOf(terminal)}`,
    `Requested ${localTime(created_at)}, correlation id ${correlation_id}`,
    "Readiness chain:",
    ...steps,
    ...(failure ? describeFailure(failure, node_name) : []),
  ].join("\n");
}

function describeFailure(failure: NonNullable<TerminalSession["failure"]>, node: string) {
  const { code, title, severity, hop, owner, detail, at, correlation_id } = failure;
  const entry = isTerminalFailure(code) ? terminalFailures[code] : undefined;
  return [
    `Failure: ${title} (${code}), ${localTime(at)}, correlation id ${correlation_id}`,
    ...[entry?.message, detail].flatMap((text) => (text ? [`  ${text}`] : [])),
    `  Where: ${hop}. Owner: ${owner}${severity === null ? "" : `. Severity: ${severity}`}.`,
    ...(entry ? [`  What to do: ${adviceFor(node, entry.action)}`] : []),
  ];
}
