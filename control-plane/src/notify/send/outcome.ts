// What became of one attempt to send a message.

import { redact } from "@holdfast/kit/redact";

export type Outcome = {
  delivered: boolean;
  /** What the receiver returned, shortened; or why it was not reached. For people, without secrets. */
  answer: string;
};

const LONGEST_ANSWER = 200;
export const NO_ANSWER: Outcome = { delivered: false, answer: "No answer in time." };

/** One line, without control characters and secrets. */
export function shortened(text: string): string {
  const line = redact(text.toWellFormed())
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, " ")
    .trim();
  return line.length > LONGEST_ANSWER ? `${line.slice(0, LONGEST_ANSWER)}…` : line;
}

/** Messages of errors name hosts and ports; codes do not change with the version of Node.js. */
export function failureOf(error: unknown): Outcome {
  const { code, message, name } = error as { code?: unknown; message?: string; name?: string };
  // Nothing but the time limit aborts a request.
  if (name === "TimeoutError" || name === "AbortError") return NO_ANSWER;
  const parts = [typeof code === "string" ? code : name, message].filter(Boolean);
  return { delivered: false, answer: shortened(parts.join(": ")) };
}
