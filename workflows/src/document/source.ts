// The text of a document: YAML, of which JSON is a part, with the place of every value.

import {
  type Document,
  isMap,
  isScalar,
  LineCounter,
  type ParsedNode,
  parseDocument,
  type Scalar,
  visit,
} from "yaml";
import { type Finding, type Path, type Problem, pathText } from "./problem.ts";
import { MOST_DOCUMENT_BYTES } from "./schema.ts";

export type Source = { value: unknown; place: (finding: Finding) => Problem };

/** What is shown at once. Each is looked up in the text, so that thousands would keep a process busy. */
export const MOST_PROBLEMS = 100;

/** Documents are data: no tags of one's own, no merge keys, and few aliases, which could stand for very much. */
const MOST_ALIASES = 20;

export function parseSource(text: string): { source: Source } | { problems: Problem[] } {
  const bytes = new TextEncoder().encode(text).length;
  if (bytes > MOST_DOCUMENT_BYTES) {
    const message = `The document has ${bytes} bytes; at most ${MOST_DOCUMENT_BYTES} are allowed.`;
    return { problems: [{ code: "too_large", message, path: "", line: 1, column: 1 }] };
  }
  const lines = new LineCounter();
  const parsed = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    schema: "core",
    version: "1.2",
    uniqueKeys: false,
  });
  const broken = [...parsed.errors, ...parsed.warnings].slice(0, MOST_PROBLEMS);
  const at = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  if (broken.length > 0) {
    return {
      problems: broken.map(({ message, pos: [offset] }) => ({
        ...{ code: "syntax", message: sentence(message), path: "" },
        ...at(offset),
      })),
    };
  }
  const key = firstBadKey(parsed);
  if (key) return { problems: [{ code: "syntax", message: key.message, path: "", ...at(key.offset) }] };
  let value: unknown;
  try {
    value = parsed.toJS({ maxAliasCount: MOST_ALIASES });
  } catch (error) {
    return {
      problems: [{ code: "syntax", message: sentence(String((error as Error).message)), path: "", ...at(0) }],
    };
  }
  const place = ({ code, message, path, offset = 0 }: Finding): Problem => ({
    ...{ code, message, path: pathText(path) },
    ...at(offsetIn(text, parsed.contents, { path, offset })),
  });
  return { source: { value, place } };
}

/** One that is there twice: the library compares each key with all others, which takes seconds for thousands of keys. */
function firstBadKey(document: Document.Parsed): { message: string; offset: number } | undefined {
  let found: { message: string; offset: number } | undefined;
  visit(document, {
    Map: (_, { items }) => {
      const known = new Set<unknown>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        const offset = rangeOf(key)?.[0] ?? 0;
        if (key.value === "__proto__") found = { message: "A field cannot have the name __proto__.", offset };
        else if (known.has(key.value)) found = { message: "Map keys must be unique.", offset };
        if (found) return visit.BREAK;
        known.add(key.value);
      }
      return undefined;
    },
  });
  return found;
}

const sentence = (message: string) => (message.endsWith(".") ? message : `${message}.`);

/** Where the value at the path begins, or the nearest one around it. */
function offsetIn(
  text: string,
  root: ParsedNode | null,
  { path, offset }: { path: Path; offset: number },
): number {
  let node: unknown = root;
  let found = rangeOf(root)?.[0] ?? 0;
  for (const part of path) {
    const pair = isMap(node)
      ? node.items.find(({ key }) => isScalar(key) && String(key.value) === String(part))
      : undefined;
    const child = pair ? pair.value : typeof part === "number" ? itemOf(node, part) : undefined;
    // A key without a value, or one that is itself the problem.
    if (pair) found = rangeOf(pair.key)?.[0] ?? found;
    if (!child) return found;
    node = child;
    if (!pair) found = rangeOf(child)?.[0] ?? found;
  }
  return isScalar(node) ? insideScalar(text, node, { start: found, offset }) : found;
}

function itemOf(node: unknown, index: number): unknown {
  const items = (node as { items?: unknown[] } | null)?.items;
  return Array.isArray(items) ? items[index] : undefined;
}

function rangeOf(node: unknown): readonly number[] | undefined {
  return (node as { range?: readonly number[] | null } | null)?.range ?? undefined;
}

/** Exact where the text stands in the source as it is; otherwise where the value begins. */
function insideScalar(text: string, node: Scalar, { start, offset }: { start: number; offset: number }): number {
  const [begin = start, end = start] = rangeOf(node) ?? [];
  if (typeof node.value !== "string") return begin;
  const raw = text.slice(begin, end);
  if (offset === 0 && !raw.startsWith("|") && !raw.startsWith(">")) return begin;
  const before = node.value.slice(0, offset);
  const line = before.slice(before.lastIndexOf("\n") + 1);
  const rest = node.value.slice(offset).split("\n", 1)[0] ?? "";
  // The line of the value that holds the offset; the first one that looks like it.
  const index = raw.indexOf(line + rest);
  return index === -1 ? begin : begin + index + line.length;
}
