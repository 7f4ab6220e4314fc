// Reads answers of services that speak JSON.

import { ConnectorFailure, type HttpAnswer } from "./actions.ts";

export function jsonOf(answer: HttpAnswer): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(answer.body);
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>;
  } catch {
    // Said below.
  }
  throw new ConnectorFailure("response_invalid", "The body is not a JSON object.");
}

/** What a service says about a refusal, as far as it can be shown: one line of the fields in which services say it. */
export function explanationOf(body: string): string {
  let said = body;
  try {
    const value = JSON.parse(body) as Record<string, unknown>;
    const texts = [value["message"], value["error"], value["errorMessages"], value["errors"]]
      .filter((one) => one !== undefined && one !== null && JSON.stringify(one).length > 2)
      .map((one) => (typeof one === "string" ? one : JSON.stringify(one)));
    if (texts.length > 0) said = texts.join(" ");
  } catch {
    if (/^\s*</.test(body)) said = "";
  }
  const line = said
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, " ")
    .trim();
  return line.length > LONGEST ? `${line.slice(0, LONGEST)}…` : line;
}

const LONGEST = 300;
