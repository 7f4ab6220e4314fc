// What is wrong with a value, for people. Where a schema has a message of its own, that is it; zod's standard messages speak of schemas, and
// are put into words here.

import type { z } from "zod";

type Issue = z.core.$ZodIssue;

/** How zod's own messages begin; the messages of our schemas begin otherwise. */
const standard = /^(Invalid |Too (small|big):|Unrecognized key)/;

export function problemInWords(issue: Issue): string {
  return standard.test(issue.message) ? (wordsOf(issue) ?? issue.message) : issue.message;
}

function wordsOf(issue: Issue): string | undefined {
  switch (issue.code) {
    case "invalid_type":
      if (issue.message.endsWith("received undefined")) return "is required";
      return `must be ${nounOf(issue.expected)}`;
    case "too_small":
      return `must ${verbOf(issue.origin)} ${issue.inclusive === false ? "more than" : "at least"} ${amount(issue.origin, issue.minimum)}`;
    case "too_big":
      return `must ${verbOf(issue.origin)} ${issue.inclusive === false ? "less than" : "at most"} ${amount(issue.origin, issue.maximum)}`;
    case "invalid_value":
      return `must be ${listOf(issue.values.map(String))}`;
    case "not_multiple_of":
      return `must be a multiple of ${issue.divisor}`;
    case "unrecognized_keys":
      return `has unknown fields: ${issue.keys.join(", ")}`;
    case "invalid_format":
      return formats[issue.format] ?? "does not have the required form";
    case "invalid_union":
      return "has none of the allowed forms";
    default:
      return undefined;
  }
}

const formats: Readonly<Record<string, string>> = {
  email: "must be an email address",
  url: "must be a URL",
  uuid: "must be an id, such as 01a1e13c-bc3d-71c5-9b58-aada3c2346d4",
  datetime: "must be a time, such as 2026-01-31T12:00:00Z",
};

const nouns: Readonly<Record<string, string>> = {
  array: "a list",
  boolean: "true or false",
  int: "a whole number",
  object: "an object",
  record: "an object",
};

const nounOf = (expected: string) => nouns[expected] ?? `a ${expected}`;

const counted: Readonly<Record<string, readonly [one: string, several: string]>> = {
  string: ["character", "characters"],
  array: ["entry", "entries"],
  set: ["entry", "entries"],
  record: ["field", "fields"],
  object: ["field", "fields"],
};

const verbOf = (origin: string) => (counted[origin] ? "have" : "be");

function amount(origin: string, count: number | bigint): string {
  const noun = counted[origin];
  return noun ? `${count} ${noun[Number(count) === 1 ? 0 : 1]}` : String(count);
}

const listOf = (values: string[]) =>
  values.length === 1 ? String(values[0]) : `${values.slice(0, -1).join(", ")} or ${values.at(-1)}`;
