// Values with expressions in them: texts that contain `${{ expression }}`. A text that is nothing but one expression becomes its
// value; otherwise the results are put into the text. `$${{` stands for `${{` itself.

import type { Path } from "../document/problem.ts";
import { parseExpression } from "./references.ts";

const OPEN = "${{";
const CLOSE = "}}";

/** Texts as they are, and expressions with where they begin. */
export type Piece = { text: string } | { expression: string; offset: number };

export type Cut = { pieces: Piece[]; unclosed?: number };

export function cutTemplate(text: string): Cut {
  const pieces: Piece[] = [];
  let literal = "";
  let at = 0;
  while (at < text.length) {
    const open = text.indexOf(OPEN, at);
    if (open === -1) break;
    if (text[open - 1] === "$" && open - 1 >= at) {
      literal += text.slice(at, open - 1) + OPEN;
      at = open + OPEN.length;
      continue;
    }
    const begin = open + OPEN.length;
    const end = endOfExpression(text, begin);
    if (end === undefined) return { pieces, unclosed: open };
    literal += text.slice(at, open);
    if (literal !== "") pieces.push({ text: literal });
    literal = "";
    pieces.push({ expression: text.slice(begin, end), offset: begin });
    at = end + CLOSE.length;
  }
  literal += text.slice(at);
  if (literal !== "") pieces.push({ text: literal });
  return { pieces };
}

const MOST_CANDIDATES = 30;

/** An expression may contain `}}` itself: it ends at the first one behind which it is complete. */
function endOfExpression(text: string, begin: number): number | undefined {
  const first = text.indexOf(CLOSE, begin);
  let end = first;
  for (let tried = 0; end !== -1 && tried < MOST_CANDIDATES; tried++) {
    if (parseExpression(text.slice(begin, end)).ok) return end;
    end = text.indexOf(CLOSE, end + 1);
  }
  return first === -1 ? undefined : first;
}

export type FoundText = { text: string; path: Path };

/** All texts of a value that contain an opening, with where they are. */
export function templatesIn(value: unknown, path: Path = []): FoundText[] {
  if (typeof value === "string") return value.includes(OPEN) ? [{ text: value, path }] : [];
  if (Array.isArray(value)) return value.flatMap((one, index) => templatesIn(one, [...path, index]));
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, one]) => templatesIn(one, [...path, key]));
}
