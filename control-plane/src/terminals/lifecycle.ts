// Applies events to a terminal, and returns its new lifecycle with notes for the audit and the metrics. Pure and
// idempotent: an event that is applied twice changes and reports nothing the second time, so a gateway may repeat a report.

import type { TerminalState } from "@holdfast/contracts/endpoints/terminals";
import type { TerminalEvent } from "@holdfast/contracts/internal/endpoints";
import { isIntendedEnd, isTerminalFailure, type TerminalFailureCode } from "@holdfast/contracts/reasons/terminal";
import type { ReadinessStep } from "@holdfast/contracts/terminal/frames";
import { exhaustive } from "@holdfast/kit/exhaustive";
import { hasEnded, type TerminalTransition, terminalOutcome } from "./state.ts";

export type Failure = { code: TerminalFailureCode; detail: string | null; at: string; correlation_id: string };
export type Exit = { code: number | null; signal: string | null };

export type Lifecycle = {
  state: TerminalState;
  /** When each step of the opening was reached. */
  chain: Partial<Record<ReadinessStep, string>>;
  failure: Failure | null;
  attached: boolean;
  /** When a client last attached or detached. */
  attachmentAt: string | null;
  closedAt: string | null;
  closeReason: string | null;
  exit: Exit | null;
  bytesIn: number | null;
  bytesOut: number | null;
};

/** A change for the audit and the metrics. */
export type Note =
  | { type: "opened"; seconds: number }
  | { type: "attached" }
  | { type: "failed"; failure: Failure }
  /** `failure` is set if the terminal did not end as intended. */
  | {
      type: "closed";
      reason: string;
      failure: Failure | null;
      exit: Exit | null;
      bytesIn: number;
      bytesOut: number;
      correlationId: string | null;
    };

/** The events that gateways report, and those that only the reconciler can observe. */
export type Observed =
  | TerminalEvent
  | { type: "abandoned"; at: string; code: TerminalFailureCode; correlation_id: string }
  | { type: "unused"; at: string };

export function applyEvent(lifecycle: Lifecycle, event: Observed): { lifecycle: Lifecycle; notes: Note[] } {
  switch (event.type) {
    case "step":
      return reached(lifecycle, event.step, event.at);
    case "attached":
    case "detached":
      return attachment(lifecycle, event.type === "attached", event.at);
    case "failed":
      return failed(lifecycle, event.ended ? "broken" : "failed", failureOf(event));
    case "closed":
      return closed(lifecycle, event);
    case "abandoned": {
      const { at, code, correlation_id } = event;
      if (lifecycle.state === "opening")
        return failed(lifecycle, "broken", { code, detail: null, at, correlation_id });
      const unknown = { exit: null, bytes_in: 0, bytes_out: 0 };
      return closed(lifecycle, { ...unknown, at, reason: code, detail: null, correlation_id });
    }
    case "unused":
      return unused(lifecycle, event.at);
    default:
      return exhaustive(event);
  }
}

/** A node may report an unknown code: it is kept in the detail of `terminal_pty_failed`. */
function failureOf({ code, detail, at, correlation_id }: Omit<Failure, "code"> & { code: string }): Failure {
  if (isTerminalFailure(code)) return { code, detail, at, correlation_id };
  return { code: "terminal_pty_failed", detail: detail ? `${code}: ${detail}` : code, at, correlation_id };
}

function reached(lifecycle: Lifecycle, step: ReadinessStep, at: string): { lifecycle: Lifecycle; notes: Note[] } {
  if (hasEnded(lifecycle.state) || lifecycle.chain[step] !== undefined) return { lifecycle, notes: [] };
  const chain = { ...lifecycle.chain, [step]: at };
  if (step !== "pty_ready") return { lifecycle: { ...lifecycle, chain }, notes: [] };
  const state = terminalOutcome(lifecycle.state, "ready");
  const seconds = Math.max(0, (Date.parse(at) - Date.parse(chain.token_ready ?? at)) / 1000);
  return { lifecycle: { ...lifecycle, chain, state, failure: null }, notes: [{ type: "opened", seconds }] };
}

function attachment(lifecycle: Lifecycle, attached: boolean, at: string): { lifecycle: Lifecycle; notes: Note[] } {
  const last = lifecycle.attachmentAt === null ? Number.NEGATIVE_INFINITY : Date.parse(lifecycle.attachmentAt);
  const time = Date.parse(at);
  const known = time < last || (time === last && lifecycle.attached === attached);
  if (hasEnded(lifecycle.state) || known) return { lifecycle, notes: [] };
  return {
    lifecycle: { ...lifecycle, attached, attachmentAt: at },
    notes: attached ? [{ type: "attached" }] : [],
  };
}

function failed(
  lifecycle: Lifecycle,
  transition: TerminalTransition & ("failed" | "broken"),
  failure: Failure,
): { lifecycle: Lifecycle; notes: Note[] } {
  const { code, at } = failure;
  const repeated = lifecycle.failure?.code === code && Date.parse(lifecycle.failure.at) === Date.parse(at);
  const state = terminalOutcome(lifecycle.state, transition);
  if (hasEnded(lifecycle.state) || (repeated && state === lifecycle.state)) return { lifecycle, notes: [] };
  const ended = hasEnded(state) ? { attached: false, closedAt: at, closeReason: code } : {};
  return { lifecycle: { ...lifecycle, ...ended, state, failure }, notes: [{ type: "failed", failure }] };
}

type Closing = Omit<Extract<TerminalEvent, { type: "closed" }>, "type">;

/** A shell that exits has no failure. One that was ended has the reason, and counts as failed unless that was intended. */
function closed(lifecycle: Lifecycle, closing: Closing): { lifecycle: Lifecycle; notes: Note[] } {
  const { at, reason, detail, exit, bytes_in: bytesIn, bytes_out: bytesOut, correlation_id } = closing;
  const why = isTerminalFailure(reason) ? { code: reason, detail, at, correlation_id } : null;
  const failure = why && !isIntendedEnd(why.code) ? why : null;
  const state = terminalOutcome(lifecycle.state, failure ? "broken" : "closed");
  if (state === lifecycle.state) return { lifecycle, notes: [] };
  const ended = { state, attached: false, closedAt: at, closeReason: reason, exit, bytesIn, bytesOut };
  return {
    lifecycle: { ...lifecycle, ...ended, failure: why ?? lifecycle.failure },
    notes: [{ type: "closed", reason, failure, exit, bytesIn, bytesOut, correlationId: correlation_id }],
  };
}

function unused(lifecycle: Lifecycle, at: string): { lifecycle: Lifecycle; notes: Note[] } {
  const state = terminalOutcome(lifecycle.state, "unused");
  if (state === lifecycle.state) return { lifecycle, notes: [] };
  const ended = { exit: null, bytesIn: 0, bytesOut: 0 };
  return {
    lifecycle: { ...lifecycle, ...ended, state, attached: false, closedAt: at, closeReason: "unused" },
    notes: [{ type: "closed", reason: "unused", failure: null, correlationId: null, ...ended }],
  };
}
