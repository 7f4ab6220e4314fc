// How a failed command ends: what happened, the next step, and an exit
// code that a script can act on.

import { CallError, fieldProblemsOf, isRetryable } from "@holdfast/contracts/call-error";
import { redact } from "@holdfast/kit/redact";
import { UsageError } from "@holdfast/kit/settings";
import { harmless, jsonText } from "./output.ts";

export const exitCodes = { done: 0, failed: 1, usage: 2, unreachable: 3, interrupted: 130 } as const;

/** The server did not respond. */
export class UnreachableError extends Error {
  override name = "UnreachableError";
}

/** The same request may succeed later: the server did not respond, or says so itself. */
export function isTemporary(error: unknown): boolean {
  return error instanceof UnreachableError || isRetryable(error);
}

/** A failure that the command itself detects or reports, in the form of the server's errors. */
export class Refusal extends Error {
  override name = "Refusal";
  readonly code: string;
  readonly nextStep: string;
  readonly details: Record<string, unknown>;

  constructor(code: string, options: { message: string; nextStep: string; details?: Record<string, unknown> }) {
    super(options.message);
    this.code = code;
    this.nextStep = options.nextStep;
    this.details = options.details ?? {};
  }
}

/** Prints the failure to stderr and returns the exit code. */
export function reportFailure(error: unknown, options: { json: boolean }): number {
  const { code, lines, body } = explain(error);
  const text = options.json ? jsonText({ error: body }) : harmless(lines.join("\n"));
  process.stderr.write(`${redact(text)}\n`);
  return code;
}

function explain(error: unknown): { code: number; lines: string[]; body: unknown } {
  if (error instanceof CallError) {
    const { envelope } = error;
    return {
      code: exitCodes.failed,
      lines: [
        `error: ${envelope.message}`,
        ...fieldProblemsOf(envelope).map(({ field, problem }) => `  ${field}: ${problem}`),
        ...namedIn(envelope.details),
        `  ${envelope.next_step}`,
        `  code ${envelope.code} · correlation id ${envelope.correlation_id}`,
        ...(envelope.runbook ? [`  runbook ${envelope.runbook}`] : []),
      ],
      body: envelope,
    };
  }
  if (error instanceof Refusal) {
    const { code, message, nextStep, details } = error;
    return {
      code: exitCodes.failed,
      lines: [`error: ${message}`, ...namedIn(details), `  ${nextStep}`, `  code ${code}`],
      body: { code, message, next_step: nextStep, details },
    };
  }
  const message = error instanceof Error ? error.message : String(error);
  const own = (code: number, name: string) => ({
    code,
    lines: [`error: ${message}`],
    body: { code: name, message },
  });
  if (error instanceof UsageError) return own(exitCodes.usage, "usage");
  if (error instanceof UnreachableError) return own(exitCodes.unreachable, "unreachable");
  return own(exitCodes.failed, "failed");
}

/** What the next step calls "named in details". */
function namedIn(details: Record<string, unknown>): string[] {
  return Object.entries(details).flatMap(([name, value]) => {
    const values = Array.isArray(value) ? value : [value];
    const sayable = values.length > 0 && values.every((one) => ["string", "number"].includes(typeof one));
    return sayable ? [`  ${name.replaceAll("_", " ")}: ${values.join(", ")}`] : [];
  });
}
