// A terminal that did not come up, or broke off, in the words of the failure catalogue: what failed, at which hop, who can
// repair it, what to do.

import { CallError } from "@holdfast/contracts/client";
import { adviceFor } from "@holdfast/contracts/reasons/advice";
import {
  alsoOffered,
  clientFailureCodes,
  isTerminalFailure,
  terminalFailures,
} from "@holdfast/contracts/reasons/terminal";
import type { TerminalError } from "@holdfast/contracts/terminal/frames";
import type { Failure } from "@holdfast/terminal-client/failures";
import { Refusal } from "../../failure.ts";

export class TerminalFailure extends Refusal {
  readonly #error: TerminalError;

  constructor(error: TerminalError, details: Record<string, unknown> = {}) {
    const { code, hop, owner, message, action, correlation_id } = error;
    super(code, { message, nextStep: action, details: { owner, ...details, hop, correlation_id } });
    this.#error = error;
  }

  advising(action: string): TerminalFailure {
    return new TerminalFailure({ ...this.#error, action }, this.details);
  }
}

/** What the command ends with: the api's own answer where it granted no token, otherwise the failure. */
export function errorOf(failure: Failure): unknown {
  const { cause, code, hop, owner, action, retryable, correlationId = "" } = failure;
  if (cause !== undefined) return withHop(cause);
  const message = messageOf(failure);
  return new TerminalFailure({ code, hop, owner, message, action, retryable, correlation_id: correlationId });
}

/** What was reported may say more than the catalogue, such as which file is missing. */
export function messageOf({ code, message, why }: Failure): string {
  if (!why) return message;
  return clientFailureCodes.some((each) => each === code) ? `${message} (${why})` : `${message} ${why}`;
}

/** A refusal of the api that has its place on the chain is reported with it; others stay as they are. */
function withHop(error: unknown): unknown {
  if (!(error instanceof CallError) || !isTerminalFailure(error.envelope.code)) return error;
  const { code, message, next_step, retryable, correlation_id, details } = error.envelope;
  const { hop, owner } = terminalFailures[code];
  return new TerminalFailure({ code, hop, owner, message, action: next_step, retryable, correlation_id }, details);
}

/** Advice whose commands name the node; for a shell that could not start because of its user, the command that restores it. */
export function withAdvice(
  error: unknown,
  { username, node_name }: { username: string; node_name: string },
): unknown {
  if (!(error instanceof TerminalFailure)) return error;
  if (alsoOffered(error.code) !== "repair") return error.advising(adviceFor(node_name, error.nextStep));
  const command = `holdfast allocation repair ${username}@${node_name}`;
  return error.advising(
    `\`${command}\` checks the user on the node and restores it; then open the terminal again.`,
  );
}
