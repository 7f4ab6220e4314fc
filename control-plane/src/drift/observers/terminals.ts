// Terminal outcomes: a shell that came up shows that the whole way to a node works, a failure which part of it does not. What
// users bring about themselves, what was intended, and what only the api is to blame for says nothing about a node.

import { type TerminalFailureCode, terminalReasons } from "@holdfast/contracts/reasons/terminal";
import type { TerminalReason } from "@holdfast/contracts/reasons/vocabulary";
import type { Sql } from "../../database/connect.ts";
import type { Signals } from "../../mechanisms/signals.ts";
import type { Applied } from "../../terminals/events.ts";
import { outcomesOf, type TerminalOutcome } from "../../terminals/outcomes.ts";
import type { Recorder } from "../evidence/recorder.ts";
import { type NewObservation, recordObservations } from "../evidence/write.ts";

/** Of one node. Many terminals may come up at once, and each shows the same. */
const READY_EVERY_MS = 60_000;
const MOST_REMEMBERED = 10_000;

export function observeTerminals(recorder: Recorder, now: () => number = Date.now) {
  const readyAt = new Map<string, number>();
  return (outcome: TerminalOutcome): void => {
    const observation = observationOfTerminal(outcome, now());
    if (!observation) return;
    const { nodeId, value } = outcome;
    const before = readyAt.get(nodeId);
    readyAt.delete(nodeId);
    if (value === "ready") {
      const isNews = before === undefined || now() - before >= READY_EVERY_MS;
      for (const oldest of readyAt.keys().take(readyAt.size >= MOST_REMEMBERED ? 1 : 0)) readyAt.delete(oldest);
      readyAt.set(nodeId, isNews ? now() : before);
      if (!isNews) return;
    }
    recorder.observe(nodeId, [observation]);
  };
}

/** Of terminals that no gateway reports on any more. */
export function observeEnded(options: { system: Sql; signals: Pick<Signals, "publish"> }) {
  return async (applied: Applied): Promise<void> => {
    const found = outcomesOf(applied).flatMap((outcome) => observationOfTerminal(outcome, Date.now()) ?? []);
    const changed = await recordObservations(options.system, found);
    if (changed.length > 0) options.signals.publish("evidence", changed);
  };
}

/** Undefined: it does not concern the node. A gateway's clock may be ahead; nothing was observed in the future. */
function observationOfTerminal(outcome: TerminalOutcome, now: number): NewObservation | undefined {
  const { nodeId, allocationId, value, at, step, correlationId } = outcome;
  if (value !== "ready" && !concernsNode(value)) return undefined;
  // Of one VM, as others are of one allocation: the way to the node works.
  if (allocationId === null && isOfAllocation(value)) return undefined;
  const reason: TerminalReason | undefined = value === "ready" ? undefined : terminalReasons[value];
  return {
    ...{ nodeId, kind: "terminal", value, correlationId },
    observer: reason?.clientNoticed
      ? "client"
      : reason?.hop === "terminal_token_mint"
        ? "control_plane"
        : "gateway",
    observedAt: new Date(Math.min(at.getTime(), now)),
    // Not what was seen, which may be about a user: only those who may see the terminal find it, by the correlation id.
    ...(reason ? { detail: { step, ...(isOfAllocation(value) ? { allocation_id: allocationId } : {}) } } : {}),
  };
}

/** The way to the node works: other allocations on it are not concerned. */
function isOfAllocation(value: TerminalOutcome["value"]): boolean {
  return value === "terminal_pty_failed" || value === "terminal_token_mint_failed";
}

/** Limits, permissions and ends on purpose have a lower severity, or none. A refused token is reported with cause only. */
function concernsNode(code: TerminalFailureCode): boolean {
  const { severity, owner }: TerminalReason = terminalReasons[code];
  return (severity === "P1" && owner !== "api") || code === "terminal_token_mint_failed";
}
