// What an event makes of a terminal, and what is to be told of it. Pure: the same event twice changes and
// tells nothing the second time, so that a gateway may repeat what it is not sure to have said.

import type { ReadinessChain, TerminalState } from "@holdfast/contracts/endpoints/terminals";
import type { TerminalEvent } from "@holdfast/contracts/service-endpoints";
import { isTerminalFailure, type TerminalFailureCode } from "@holdfast/contracts/terminal-failures";
import { exhaustive } from "@holdfast/kit/exhaustive";
import { hasEnded, type TerminalTransition, terminalOutcome } from "./state.ts";

export type Failure = { code: TerminalFailureCode; detail: string | null; at: string };
export type Exit = { code: number | null; signal: string | null };

export type Life = {
  state: TerminalState;
  chain: ReadinessChain;
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
  | { type: "failed"; code: TerminalFailureCode; detail: string | null }
  | { type: "closed"; reason: string; exit: Exit | null; bytesIn: number; bytesOut: number };

/** Beside what a gateway tells: what only the reconciler can see. */
export type Observed =
  | TerminalEvent
  | { type: "abandoned"; at: string; code: TerminalFailureCode }
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
      return closed(life, "closed", event);
    case "abandoned": {
      const { at, code } = event;
      if (life.state === "opening") return failed(life, "abandoned", { code, detail: null, at });
      return closed(life, "abandoned", { at, reason: code, exit: null, bytes_in: 0, bytes_out: 0 });
    }
    case "unused":
      return closed(life, "unused", { at: event.at, reason: "unused", exit: null, bytes_in: 0, bytes_out: 0 });
    default:
      return exhaustive(event);
  }
}

/** A node may say what nobody knows: it is kept in words, under the code of the place it came from. */
function failureOf({ code, detail, at }: { code: string; detail: string | null; at: string }): Failure {
  if (isTerminalFailure(code)) return { code, detail, at };
  return { code: "terminal_pty_failed", detail: detail ? `${code}: ${detail}` : code, at };
}

function reached(life: Life, step: keyof ReadinessChain, at: string): { life: Life; notes: Note[] } {
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
  transition: TerminalTransition & ("failed" | "broken" | "abandoned"),
  failure: Failure,
): { life: Life; notes: Note[] } {
  const { code, detail, at } = failure;
  const repeated = life.failure?.code === code && Date.parse(life.failure.at) === Date.parse(at);
  const state = terminalOutcome(life.state, transition);
  if (hasEnded(life.state) || (repeated && state === life.state)) return { life, notes: [] };
  const ended = hasEnded(state) ? { attached: false, closedAt: at, closeReason: code } : {};
  return { life: { ...life, ...ended, state, failure }, notes: [{ type: "failed", code, detail }] };
}

type Closing = Omit<Extract<TerminalEvent, { type: "closed" }>, "type">;

function closed(
  life: Life,
  transition: TerminalTransition & ("closed" | "abandoned" | "unused"),
  { at, reason, exit, bytes_in: bytesIn, bytes_out: bytesOut }: Closing,
): { life: Life; notes: Note[] } {
  const state = terminalOutcome(life.state, transition);
  if (state === life.state) return { life, notes: [] };
  const ended = { state, attached: false, closedAt: at, closeReason: reason, exit, bytesIn, bytesOut };
  return { life: { ...life, ...ended }, notes: [{ type: "closed", reason, exit, bytesIn, bytesOut }] };
}
