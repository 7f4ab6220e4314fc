// A terminal that did not come up, or broke off, in the words of the failure catalogue: what failed, at
// which hop, whose it is, what to do.

import { CallError } from "@holdfast/contracts/client";
import {
  alsoOffered,
  isTerminalFailure,
  type TerminalFailureCode,
  terminalFailures,
} from "@holdfast/contracts/reasons/terminal";
import type { TerminalError } from "@holdfast/contracts/terminal-frames";
import { isTemporary, Refusal } from "../../failure.ts";

export class TerminalFailure extends Refusal {
  readonly retryable: boolean;
  readonly #error: TerminalError;

  constructor(error: TerminalError, details: Record<string, unknown> = {}) {
    const { code, hop, owner, message, action, retryable, correlation_id } = error;
    super(code, { message, nextStep: action, details: { owner, ...details, hop, correlation_id } });
    this.retryable = retryable;
    this.#error = error;
  }

  advising(action: string): TerminalFailure {
    return new TerminalFailure({ ...this.#error, action }, this.details);
  }
}

/** What the gateway tells may say more than the catalogue, such as which file is missing. */
export function failureTold(error: TerminalError): TerminalFailure {
  const known = isTerminalFailure(error.code) ? terminalFailures[error.code].message : error.message;
  return new TerminalFailure({
    ...error,
    message: known === error.message ? known : `${known} ${error.message}`,
  });
}

export function failureSeen(
  code: TerminalFailureCode,
  options: { correlationId: string; detail: string },
): TerminalFailure {
  const { message, ...entry } = terminalFailures[code];
  return new TerminalFailure({
    code,
    ...entry,
    message: `${message} (${options.detail})`,
    correlation_id: options.correlationId,
  });
}

/** A refusal of the api that has its place on the chain is told with it; others stay as they are. */
export function withHop(error: unknown): unknown {
  if (!(error instanceof CallError) || !isTerminalFailure(error.envelope.code)) return error;
  const { code, message, next_step, retryable, correlation_id, details } = error.envelope;
  const { hop, owner } = terminalFailures[code];
  return new TerminalFailure({ code, hop, owner, message, action: next_step, retryable, correlation_id }, details);
}

/** A shell that could not start because of its user: names the command that restores it. */
export function withRepair(
  error: unknown,
  { username, node_name }: { username: string; node_name: string },
): unknown {
  if (!(error instanceof TerminalFailure) || alsoOffered(error.code) !== "repair") return error;
  const command = `holdfast allocation repair ${username}@${node_name}`;
  return error.advising(
    `\`${command}\` checks the user on the node and restores it; then open the terminal again.`,
  );
}

export function mayPass(error: unknown): boolean {
  if (error instanceof TerminalFailure) return error.retryable;
  return isTemporary(error);
}
