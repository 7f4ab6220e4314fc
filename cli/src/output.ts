// Command output: a table or a sentence for people, one JSON value for scripts.

import { bytesInWords } from "@holdfast/contracts/words/bytes";

// Control characters in names from the server could rewrite the reader's terminal.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is being removed
const controlCharacters = /[\u0000-\u001f\u007f-\u009f]/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: the same, but for line breaks
const controlCharactersInLines = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/g;
/** Those that JSON does not escape by itself. */
const controlCharactersInJson = /[\u007f-\u009f]/g;

export type Column<Row> = { title: string; of: (row: Row) => string | null };

export function printResult<T>(options: { json?: boolean }, result: T, forPeople: (result: T) => string): void {
  process.stdout.write(`${options.json ? jsonText(result) : harmless(forPeople(result))}\n`);
}

/** Printed to stderr: only the result goes to stdout. */
export function printWarnings(warnings: readonly string[]): void {
  for (const warning of warnings) process.stderr.write(`warning: ${warning}\n`);
}

/** One line of JSON that may be shown on a terminal. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value).replace(controlCharactersInJson, (one) => `\\u00${one.charCodeAt(0).toString(16)}`);
}

/** Text of several lines that may be shown on a terminal. */
export function harmless(text: string): string {
  return text.replace(controlCharactersInLines, "�");
}

export function table<Row>(rows: readonly Row[], columns: readonly Column<Row>[]): string {
  const cells = rows.map((row) => columns.map((column) => clean(column.of(row) ?? "–")));
  const all = [columns.map((column) => column.title.toUpperCase()), ...cells];
  const widths = columns.map((_, index) => Math.max(...all.map((line) => line[index]?.length ?? 0)));
  return all
    .map((line) =>
      line
        .map((cell, index) => cell.padEnd(widths[index] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

/** A line below a table that has further pages; empty on the last page. */
export function nextPage(shown: readonly unknown[], cursor: string | null): string {
  return cursor === null
    ? ""
    : `\n\nShowing ${shown.length}; there are more. For the next page, add --cursor ${cursor}`;
}

function clean(text: string): string {
  return text.replace(controlCharacters, "�");
}

/** Local time to the second: what a person compares with their clock. */
export function localTime(iso: string | null): string | null {
  if (iso === null) return null;
  const at = new Date(iso);
  const two = (number: number) => String(number).padStart(2, "0");
  const date = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${date} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** A value of any shape for people: a line for each field, indented below what it belongs to. */
export function readable(value: unknown, indent = ""): string {
  if (Array.isArray(value) && value.every(isPlain)) return indent + (value.map(plain).join(", ") || "none");
  if (Array.isArray(value))
    return value.map((one) => readable(one, `${indent}  `).replace(/ {2}(?=\S)/, "- ")).join("\n");
  if (isPlain(value)) return indent + plain(value);
  return Object.entries(value as object)
    .map(([name, one]) => {
      const label = `${indent}${name.replace(/_(bytes|seconds)$/, "").replaceAll("_", " ")}`;
      if (isPlain(one) || (Array.isArray(one) && one.every(isPlain)))
        return `${label}: ${readable(inUnit(name, one))}`;
      return `${label}:\n${readable(one, `${indent}  `)}`;
    })
    .join("\n");
}

/** Names carry their units, as in `free_bytes`; people read GiB and hours. */
function inUnit(name: string, value: unknown): unknown {
  if (typeof value !== "number" || value < 0) return value;
  if (name.endsWith("_bytes")) return bytesInWords(value);
  return name.endsWith("_seconds") ? span(value * 1000) : value;
}

function isPlain(value: unknown): boolean {
  return value === null || typeof value !== "object";
}

function plain(value: unknown): string {
  if (value === null || value === undefined || value === "") return "–";
  if (typeof value === "boolean") return value ? "yes" : "no";
  return clean(String(value));
}

/** A duration: 340 ms, 2.4 s, 3 min, 5 h, 2 days. */
export function span(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 3_600_000) return `${Math.round(ms / 60_000)} min`;
  if (ms < 172_800_000) return `${Math.round(ms / 3_600_000)} h`;
  return `${Math.round(ms / 86_400_000)} days`;
}

/** A time further in the future than this comes from another clock, and one of the two clocks is wrong. */
const SKEW_MS = 60_000;

export function ago(iso: string | null, now = Date.now()): string {
  if (iso === null) return "never";
  const age = now - Date.parse(iso);
  return age < -SKEW_MS ? `${span(-age)} ahead of this computer's clock` : `${span(Math.max(0, age))} ago`;
}
