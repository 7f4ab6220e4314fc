// What became of terminals, for whoever judges the way to a node by it.

import type { TerminalFailureCode } from "@holdfast/contracts/reasons/terminal";
import { type ReadinessStep, readinessSteps } from "@holdfast/contracts/terminal/frames";
import type { Applied } from "./events.ts";

export type TerminalOutcome = {
  nodeId: string;
  /** Null: it is the console of a VM. */
  allocationId: string | null;
  value: "ready" | TerminalFailureCode;
  at: Date;
  /** The last step of the opening that was reached. */
  step: ReadinessStep | null;
  correlationId: string;
};

/** In the order in which they happened. */
export function outcomesOf({ session, lifecycle, notes }: Applied): TerminalOutcome[] {
  const { chain } = lifecycle;
  const step = readinessSteps.findLast((one) => chain[one] !== undefined) ?? null;
  return notes.flatMap((note): TerminalOutcome[] => {
    const common = { nodeId: session.node_id, allocationId: session.allocation_id, step };
    if (note.type === "opened") {
      const at = new Date(chain.pty_ready ?? session.created_at);
      return [{ ...common, value: "ready", at, correlationId: session.correlation_id }];
    }
    if (note.type === "attached" || !note.failure) return [];
    const { code, at, correlation_id } = note.failure;
    return [{ ...common, value: code, at: new Date(at), correlationId: correlation_id }];
  });
}
