// Renames a node within an expression, where the expression reads it.

import { parseExpression } from "@holdfast/workflows/expressions/references";

/** JSONata reads `nodes.a-b` as a subtraction: names that are no plain words are quoted. */
const quoted = (id: string) => (/^[a-z_][a-z0-9_]*$/.test(id) ? id : `\`${id}\``);

export function renameInExpression(expression: string, from: string, to: string): string {
  const parsed = parseExpression(expression);
  if (!parsed.ok) return expression;
  return parsed.used.nodes
    .filter(({ id }) => id === from)
    .map(({ offset }) => placeOf(expression, from, offset))
    .toSorted((a, b) => b[0] - a[0])
    .reduce((all, [start, end]) => all.slice(0, start) + quoted(to) + all.slice(end), expression);
}

/** Quotes are part of the place; the offset of a quoted name may be off by them. */
function placeOf(expression: string, name: string, offset: number): [number, number] {
  const start = [0, -1, -2, 1].map((by) => offset + by).find((at) => expression.startsWith(name, at)) ?? offset;
  const end = start + name.length;
  const quote = expression[start - 1] ?? "";
  return "`'\"".includes(quote) && quote !== "" && expression[end] === quote ? [start - 1, end + 1] : [start, end];
}
