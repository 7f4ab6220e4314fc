// What an expression uses, found without running it: names at the root of its context, and functions that it may not call.

import jsonata from "jsonata";

/** What every expression can use. */
export const contextNames = ["input", "nodes", "run"] as const;
/** Fields of `nodes.<id>`. */
const nodeFields = ["output", "error"];

/**
 * Their result differs each time, and a step that is repeated after a crash must get the same input; `$eval` would run text as
 * code, which nobody has validated.
 */
export const forbiddenFunctions: ReadonlySet<string> = new Set(["eval", "now", "millis", "random", "shuffle"]);

export type Used = {
  /** Nodes whose output it reads. */
  nodes: { id: string; offset: number }[];
  unknown: { name: string; offset: number }[];
  forbidden: { name: string; offset: number }[];
};

export type Parsed = { ok: true; used: Used } | { ok: false; message: string; offset: number };

/** An element of JSONata's syntax tree; which fields it has depends on its type. */
type Element = { type?: string; value?: unknown; position?: number; steps?: Element[] } & Record<string, unknown>;

export function parseExpression(expression: string): Parsed {
  let ast: Element;
  try {
    ast = jsonata(expression).ast() as unknown as Element;
  } catch (error) {
    const { message, position } = error as { message?: string; position?: number };
    const offset = Math.max(0, Math.min(position ?? 0, expression.length) - 1);
    return { ok: false, message: message ?? String(error), offset };
  }
  const used: Used = { nodes: [], unknown: [], forbidden: [] };
  visit(ast, { atRoot: true, used });
  return { ok: true, used };
}

type Visit = { atRoot: boolean; used: Used };

function visit(element: unknown, { atRoot, used }: Visit): void {
  if (Array.isArray(element)) {
    for (const one of element) visit(one, { atRoot, used });
    return;
  }
  if (typeof element !== "object" || element === null) return;
  const { type, value, position = 1, steps, ...rest } = element as Element;
  if (type === "variable" && typeof value === "string" && forbiddenFunctions.has(value)) {
    used.forbidden.push({ name: value, offset: position - value.length - 1 });
  }
  if (type === "path" && steps) {
    noteRoot(steps, { atRoot, used });
    for (const [index, one] of steps.entries()) {
      const { stages, predicate, ...bare } = one;
      visit(bare, { atRoot: atRoot && index === 0, used });
      visit([stages, predicate], { atRoot: false, used });
    }
    visit(rest, { atRoot: false, used });
    return;
  }
  visit(Object.values(rest), { atRoot, used });
}

/** `input.a`, `nodes.fetch.output`, `$.input`, `$$.input`. */
function noteRoot(steps: readonly Element[], { atRoot, used }: Visit): void {
  const [first] = steps;
  const isContext = first?.type === "variable" && (first.value === "$" || (first.value === "" && atRoot));
  const names = isContext ? steps.slice(1) : atRoot ? steps : [];
  const [root, id, field] = names;
  if (root?.type !== "name") return;
  if (!(contextNames as readonly unknown[]).includes(root.value)) {
    used.unknown.push({ name: String(root.value), offset: offsetOf(root) });
  }
  if (root.value !== "nodes" || id?.type !== "name") return;
  used.nodes.push({ id: String(id.value), offset: offsetOf(id) });
  if (field?.type === "name" && !nodeFields.includes(String(field.value))) {
    used.unknown.push({ name: `nodes.${id.value}.${field.value}`, offset: offsetOf(field) });
  }
}

/** JSONata's positions are behind the name; quotes around it are left out of account. */
function offsetOf({ position = 0, value }: Element): number {
  return Math.max(0, position - String(value).length);
}
