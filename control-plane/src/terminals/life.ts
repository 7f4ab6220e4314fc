// What an event makes of a terminal, and what is to be told of it. Pure: the same event twice changes and
// tells nothing the second time, so that a gateway may repeat what it is not sure to have said.

import type { TerminalState } from "@holdfast/contracts/endpoints/terminals";
import { isIntendedEnd, isTerminalFailure, type TerminalFailureCode } from "@holdfast/contracts/reasons/terminal";
import type { TerminalEvent } from "@holdfast/contracts/service-endpoints";
import type { ReadinessStep } from "@holdfast/contracts/terminal-frames";
import { exhaustive } from "@holdfast/kit/exhaustive";
import { hasEnded, type TerminalTransition, terminalOutcome } from "./state.ts";

export type Failure = { code: TerminalFailureCode; detail: string | null; at: string; correlation_id: string };
export type Exit = { code: number | null; signal: string | null };

export type Life = {
  state: TerminalState;
  /** When each step was reached, of the attempt that opened it. */
  chain: Partial<Record<ReadinessStep, string>>;
  failure: Failure | null;
  attached: boolean;
  /** Of the last attach or detach. */
  attachmentAt: string | null;
  closedAt: string | null;
  closeReason: string | null;
  exit: Exit | null;
  bytesIn: number | null;
  bytesOut: number | null;
};

/** What the audit and the metrics hear. */
export type Note =
  | { type: "opened"; seconds: number }
  | { type: "attached" }
  | { type: "failed"; failure: Failure }
  /** `failure`: it did not end as intended. */
  | {
      type: "closed";
      reason: string;
      failure: Failure | null;
      exit: Exit | null;
      bytesIn: number;
      bytesOut: number;
      correlationId: string | null;
    };

/** Beside what a gateway tells: what only the reconciler can see. */
export type Observed =
  | TerminalEvent
  | { type: "abandoned"; at: string; code: TerminalFailureCode; correlation_id: string }
  | { type: "unused"; at: string };

export function after(life: Life, event: Observed): { life: Life; notes: Note[] } {
  switch (event.type) {
    case "step":
      return reached(life, event.step, event.at);
    case "attached":
    case "detached":
      return attachment(life, event.type === "attached", event.at);
    case "failed":
      return failed(life, event.ended ? "broken" : "failed", failureOf(event));
    case "closed":
      return closed(life, event);
    case "abandoned": {
      const { at, code, correlation_id } = event;
      if (life.state === "opening") return failed(life, "broken", { code, detail: null, at, correlation_id });
      const unknown = { exit: null, bytes_in: 0, bytes_out: 0 };
      return closed(life, { ...unknown, at, reason: code, detail: null, correlation_id });
    }
    case "unused":
      return unused(life, event.at);
    default:
      return exhaustive(event);
  }
}

/** A node may say what nobody knows: it is kept in words, under the code of the place it came from. */
function failureOf({ code, detail, at, correlation_id }: Omit<Failure, "code"> & { code: string }): Failure {
  if (isTerminalFailure(code)) return { code, detail, at, correlation_id };
  return { code: "terminal_pty_failed", detail: detail ? `${code}: ${detail}` : code, at, correlation_id };
}

function reached(life: Life, step: ReadinessStep, at: string): { life: Life; notes: Note[] } {
  if (hasEnded(life.state) || life.chain[step] !== undefined) return { life, notes: [] };
  const chain = { ...life.chain, [step]: at };
  if (step !== "pty_ready") return { life: { ...life, chain }, notes: [] };
  const state = terminalOutcome(life.state, "ready");
  const seconds = Math.max(0, (Date.parse(at) - Date.parse(chain.token_ready ?? at)) / 1000);
  return { life: { ...life, chain, state, failure: null }, notes: [{ type: "opened", seconds }] };
}

function attachment(life: Life, attached: boolean, at: string): { life: Life; notes: Note[] } {
  const last = life.attachmentAt === null ? Number.NEGATIVE_INFINITY : Date.parse(life.attachmentAt);
  const time = Date.parse(at);
  const known = time < last || (time === last && life.attached === attached);
  if (hasEnded(life.state) || known) return { life, notes: [] };
  return { life: { ...life, attached, attachmentAt: at }, notes: attached ? [{ type: "attached" }] : [] };
}

function failed(
  life: Life,
  transition: TerminalTransition & ("failed" | "broken"),
  failure: Failure,
): { life: Life; notes: Note[] } {
  const { code, at } = failure;
  const repeated = life.failure?.code === code && Date.parse(life.failure.at) === Date.parse(at);
  const state = terminalOutcome(life.state, transition);
  if (hasEnded(life.state) || (repeated && state === life.state)) return { life, notes: [] };
  const ended = hasEnded(state) ? { attached: false, closedAt: at, closeReason: code } : {};
  return { life: { ...life, ...ended, state, failure }, notes: [{ type: "failed", failure }] };
}

type Closing = Omit<Extract<TerminalEvent, { type: "closed" }>, "type">;

/** A shell that exits has no failure; one that was ended has the reason, and has failed unless that was intended. */
function closed(life: Life, closing: Closing): { life: Life; notes: Note[] } {
  const { at, reason, detail, exit, bytes_in: bytesIn, bytes_out: bytesOut, correlation_id } = closing;
  const why = isTerminalFailure(reason) ? { code: reason, detail, at, correlation_id } : null;
  const failure = why && !isIntendedEnd(why.code) ? why : null;
  const state = terminalOutcome(life.state, failure ? "broken" : "closed");
  if (state === life.state) return { life, notes: [] };
  const ended = { state, attached: false, closedAt: at, closeReason: reason, exit, bytesIn, bytesOut };
  return {
    life: { ...life, ...ended, failure: why ?? life.failure },
    notes: [{ type: "closed", reason, failure, exit, bytesIn, bytesOut, correlationId: correlation_id }],
  };
}

function unused(life: Life, at: string): { life: Life; notes: Note[] } {
  const state = terminalOutcome(life.state, "unused");
  if (state === life.state) return { life, notes: [] };
  const ended = { exit: null, bytesIn: 0, bytesOut: 0 };
  return {
    life: { ...life, ...ended, state, attached: false, closedAt: at, closeReason: "unused" },
    notes: [{ type: "closed", reason: "unused", failure: null, correlationId: null, ...ended }],
  };
}
