// What a preflight saw, as evidence: only what is about the node, and only what it observed itself. What it read from the api
// is there already. A probe from the node is the host's word; only what a client or the gateway saw is about a terminal.

import type { PreflightReport } from "@holdfast/contracts/preflight/report";
import { isReason, reasons } from "@holdfast/contracts/reasons/catalogue";
import { isTerminalFailure, terminalReasons } from "@holdfast/contracts/reasons/terminal";
import type { TerminalReason } from "@holdfast/contracts/reasons/vocabulary";
import type { NewObservation } from "../drift/evidence/write.ts";

export function observationsOfPreflight(report: PreflightReport, now: Date): NewObservation[] {
  const finished = new Date(report.finished_at);
  const observedAt = finished > now ? now : finished;
  const { node_id: nodeId, correlation_id: correlationId, allocation_id, hops, ssh, disk } = report;
  const common = { nodeId, observer: "preflight", observedAt, correlationId } as const;
  const found: NewObservation[] = observedFailures(hops).map((one) => ({ ...common, ...one }));
  if (allocation_id !== null && report.result === "ready")
    found.push({ ...common, kind: "terminal", value: "ready" });
  if (ssh) found.push({ ...common, kind: "ssh", value: ssh });
  const measured = hops.find(({ hop }) => hop === "node_readiness")?.checked_from === "node";
  if (measured && disk && disk.used_percent !== null && disk.pressure_percent !== null) {
    const { used_percent, pressure_percent } = disk;
    found.push({ ...common, kind: "disk", value: "measured", detail: { used_percent, pressure_percent } });
  }
  return found;
}

type Seen = { kind: "terminal" | "diagnostic"; value: string; detail: { text: string } };

function observedFailures(hops: PreflightReport["hops"]): Seen[] {
  const stopped = hops.some(({ failure }) => failure?.code === "agent_down");
  return hops.flatMap((one): Seen[] => {
    const code = one.failure?.code;
    if (code === undefined || !isReason(code)) return [];
    const detail = { text: one.detail };
    if (one.checked_from === "node") {
      const value = isTerminalFailure(code) ? "terminal_gateway_unreachable" : code;
      // Such a record says that its agent runs.
      const holds = reasons[value].kind === "diagnostic" && (!stopped || code === "agent_down");
      return holds ? [{ kind: "diagnostic", value, detail }] : [];
    }
    const asClient = one.checked_from === "command_line" || one.checked_from === "gateway";
    return asClient && concernsNode(code) ? [{ kind: "terminal", value: code, detail: { text: one.hop } }] : [];
  });
}

/** As of any other terminal: what a user may do, and what only the api is to blame for, says nothing about the node. */
function concernsNode(code: string): boolean {
  if (!isTerminalFailure(code)) return false;
  const { severity, owner }: TerminalReason = terminalReasons[code];
  return severity === "P1" && owner !== "api";
}
