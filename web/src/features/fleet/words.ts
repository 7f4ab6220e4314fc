// Counts, states of the fleet and reasons as text.

import { type DiagnosticReason, diagnosticReasons } from "@holdfast/contracts/diagnostics";
import type { FleetState } from "@holdfast/contracts/endpoints/fleet";
import { fleetStateTitles, nodeConnectionTitles } from "@holdfast/contracts/state-titles";

/** After a number: "3 offline". */
export function stateInWords(state: FleetState): string {
  return fleetStateTitles[state].title.toLowerCase();
}

/** Short, for a heading: `disk_full` is Disk full. */
export function reasonWords(code: string): string {
  const words = code.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** What it means; undefined for a code that only a newer agent has. */
export function reasonMeaning(code: string): string | undefined {
  if (code === "heartbeat_stale") return fleetStateTitles.silent.meaning;
  if (code === "heartbeat_in_future") {
    return "The last heartbeat has a time in the future, because a clock of the control plane was wrong.";
  }
  if (code === "never_heard") return nodeConnectionTitles.never.meaning;
  return Object.hasOwn(diagnosticReasons, code) ? diagnosticReasons[code as DiagnosticReason].message : undefined;
}

const figures = new Intl.NumberFormat("en");

export function count(number: number): string {
  return figures.format(number);
}

export function nodesInWords(number: number): string {
  return `${count(number)} ${number === 1 ? "node" : "nodes"}`;
}
