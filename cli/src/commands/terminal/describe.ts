// A terminal in words: its state in a list, and all that is known of it for whoever looks for a correlation id.

import type { TerminalSession } from "@holdfast/contracts/endpoints/terminals";
import { isTerminalFailure, terminalFailures } from "@holdfast/contracts/terminal-failures";
import { chainSteps } from "@holdfast/contracts/terminal-frames";
import { localTime, span } from "../../output.ts";

export function stateOf({ state, attached, failure, exit }: TerminalSession): string {
  if (state === "open") return attached ? "open" : "open, detached";
  if (state === "closed" && exit) return `closed (${exit.signal ?? `exit code ${exit.code}`})`;
  return failure && state !== "opening" ? `${state} (${failure.code})` : state;
}

/** Where it failed and who can repair that. */
export function placeOf({ failure }: TerminalSession): string | null {
  return failure && `${failure.hop}, ${failure.owner}`;
}

export function describeTerminal(terminal: TerminalSession): string {
  const { id, opened_by, created_at, correlation_id, chain, failure } = terminal;
  const asked = Date.parse(created_at);
  const steps = chainSteps.flatMap((step) => {
    const reached = chain[step];
    if (!reached) return [];
    return `  ${step.padEnd(22)} ${span(Math.max(0, Date.parse(reached.at) - asked))}  ${reached.correlation_id}`;
  });
  return [
    `Terminal ${id} of ${opened_by}: ${stateOf(terminal)}`,
    `Asked for ${localTime(created_at)}, correlation id ${correlation_id}`,
    "Readiness chain:",
    ...steps,
    ...(failure ? describeFailure(failure) : []),
  ].join("\n");
}

function describeFailure({
  code,
  hop,
  owner,
  detail,
  at,
  correlation_id,
}: NonNullable<TerminalSession["failure"]>) {
  const entry = isTerminalFailure(code) ? terminalFailures[code] : undefined;
  return [
    `Failure: ${code}, ${localTime(at)}, correlation id ${correlation_id}`,
    ...[entry?.message, detail].flatMap((text) => (text ? [`  ${text}`] : [])),
    `  Where: ${hop}. Owner: ${owner}.`,
    ...(entry ? [`  What to do: ${entry.action}`] : []),
  ];
}
