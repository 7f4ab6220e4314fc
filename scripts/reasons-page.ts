// The reference page of all reasons, with a section for each that its code links to.

import {
  type Reason,
  type ReasonCode,
  reasonCodes,
  reasons,
  runbookOf,
} from "@holdfast/contracts/reasons/catalogue";
import { placeOf, placeText } from "@holdfast/contracts/reasons/hops";
import { owners } from "@holdfast/contracts/reasons/owners";
import { nextActions } from "@holdfast/contracts/reasons/vocabulary";

const kinds: Record<Reason["kind"], string> = {
  diagnostic: "recorded by a node's agent",
  attention: "noticed by the control plane about a node",
  terminal: "reported for a terminal",
  app: "reported for an app on a node",
  signal: "name in dashboards and alarms",
};

export function reasonsPage(): string {
  return [
    "# Reasons",
    "",
    "Generated from `contracts/src/reasons/` by `npm run generate`; do not edit.",
    "",
    "Everything that can be wrong with a node or a terminal. API, page, command line, audit and logs use these codes, and",
    "the signals are the names for alarms. `<id>` stands for the node.",
    "",
    "| code | title | severity | owner | user state | next action |",
    "|---|---|---|---|---|---|",
    ...reasonCodes.map(row),
    "",
    ...reasonCodes.map((code) => section(code)),
  ].join("\n");
}

const link = (code: string) => `[\`${code}\`](#${code})`;
const ownerTitle = ({ owner }: Reason) => (owner === null ? "nobody" : owners[owner].title);

function row(code: ReasonCode): string {
  const reason = reasons[code];
  const { title, severity, userState, nextAction } = reason;
  return `| ${link(code)} | ${title} | ${severity ?? "–"} | ${ownerTitle(reason)} | \`${userState}\` | \`${nextAction}\` |`;
}

function section(code: ReasonCode): string {
  const reason = reasons[code];
  const { title, message, nextStep, severity, owner, userState, nextAction, dependsOn } = reason;
  const facts: [string, string | null][] = [
    ["Kind", `${kinds[reason.kind]}, class \`${reason.class}\``],
    ["Where", placeIn(reason)],
    ["Signal", signalOf(code, reason)],
    ["Owner", owner && `${ownerTitle(reason)} (\`${owner}\`)`],
    ["Severity", severity],
    ["User state", `\`${userState}\``],
    ["Next action", `\`${nextAction}\`: ${nextActions[nextAction]}`],
    ["Retry may help", reason.kind === "terminal" ? (reason.retryable ? "yes" : "no") : null],
    ["Symptom of", dependsOn.length === 0 ? null : dependsOn.map(link).join(", ")],
    ["Runbook", reason.runbook ? `[${reason.runbook}](../${runbookOf(code).replace(/^docs\//, "")})` : null],
  ];
  return [
    `## ${code}`,
    "",
    `**${title}.** ${message}`,
    "",
    nextStep,
    "",
    ...facts.flatMap(([name, value]) => (value === null ? [] : [`- ${name}: ${value}`])),
    "",
  ].join("\n");
}

function placeIn(reason: Reason): string | null {
  if (reason.kind === "terminal") return reason.hop;
  return "at" in reason ? placeText(placeOf(reason.at)) : null;
}

function signalOf(code: ReasonCode, reason: Reason): string | null {
  if (!("signal" in reason) || reason.signal === null) return null;
  return reason.signal === code ? `\`${code}\`` : link(reason.signal);
}
