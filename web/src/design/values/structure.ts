// How a value of unknown shape is laid out for reading. Names carry their units, as in `free_bytes`.

import { bytesInWords } from "@holdfast/contracts/words/bytes";
import { duration } from "./time.ts";

const isPlain = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Fits behind its name in a line. */
export function isShort(value: unknown): boolean {
  if (Array.isArray(value)) return value.every((each) => typeof each !== "object" || each === null);
  return !isPlain(value) || Object.keys(value).length === 0;
}

const mostColumns = 8;

/** Of a list whose items are alike and simple enough for the rows of a table; null for others. */
export function columnsOf(items: readonly unknown[]): string[] | null {
  const [first] = items;
  if (!isPlain(first)) return null;
  const columns = Object.keys(first);
  if (columns.length > mostColumns) return null;
  const alike = items.every(
    (each) => isPlain(each) && Object.keys(each).join() === columns.join() && Object.values(each).every(isShort),
  );
  return alike ? columns : null;
}

export function nameInWords(name: string): string {
  return name.replace(/_(bytes|seconds)$/, "").replaceAll("_", " ");
}

/** What its name says the unit of, in the unit that people read. */
export function inUnit(name: string, value: unknown): unknown {
  if (typeof value !== "number" || value < 0) return value;
  if (name.endsWith("_bytes")) return bytesInWords(value);
  if (name.endsWith("_seconds")) return duration(Math.round(value));
  return value;
}
