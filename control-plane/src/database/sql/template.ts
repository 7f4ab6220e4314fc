// The text of a statement and its parameters, from a tagged template. A value becomes a numbered parameter and never part
// of the text; a nested template, an identifier, or constant SQL becomes part of the text. Nothing here talks to a database.

import { createHash } from "node:crypto";
import { type Parameter, toParameter } from "./values.ts";

/** A part of a statement, or all of one. */
export class Fragment {
  readonly strings: TemplateStringsArray;
  readonly values: readonly TemplateValue[];
  constructor(strings: TemplateStringsArray, values: readonly TemplateValue[]) {
    this.strings = strings;
    this.values = values;
  }
}

/**
 * SQL that becomes part of the statement as it is. It is built from constants of the code and never from input, for what
 * the planner has to see: a partial index is not used for a condition that compares with a parameter.
 */
export class ConstantSql {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** A name of a table or column, quoted. */
export class Identifier extends ConstantSql {
  constructor(name: string) {
    super(`"${name.replaceAll('"', '""')}"`);
  }
}

export type TemplateValue = Parameter | Fragment | ConstantSql;

export type Statement = {
  text: string;
  values: (string | Buffer | null)[];
  /** Differs for every text: what prepared statements are named after. */
  digest: string;
};

/** What stood in place of each value: constant SQL, another template, or undefined for a parameter. */
type Shape = readonly (string | { strings: TemplateStringsArray; shape: Shape } | undefined)[];
type KnownText = Pick<Statement, "text" | "digest"> & { shape: Shape };

/** Most statements are known: joining the text of a long one and finding its digest takes longer than comparing its parts. */
export function compile(fragment: Fragment): Statement {
  const known = knownTexts.get(fragment.strings) ?? [];
  for (const { text, digest, shape } of known) {
    const values: Statement["values"] = [];
    if (hasShape(fragment, shape, values)) return { text, digest, values };
  }
  const values: Statement["values"] = [];
  const text = append(fragment, values);
  const made = { text, digest: digestOf(text) };
  knownTexts.set(fragment.strings, [{ ...made, shape: shapeOf(fragment) }, ...known.slice(0, MOST_SHAPES - 1)]);
  return { ...made, values };
}

/** Collects the parameters on the way. */
function hasShape({ values }: Fragment, shape: Shape, parameters: Statement["values"]): boolean {
  return values.every((value, index) => {
    const expected = shape[index];
    if (value instanceof Fragment) {
      if (typeof expected !== "object" || value.strings !== expected.strings) return false;
      return hasShape(value, expected.shape, parameters);
    }
    if (value instanceof ConstantSql) return value.text === expected;
    if (expected !== undefined) return false;
    parameters.push(toParameter(value, parameters.length + 1));
    return true;
  });
}

function shapeOf({ values }: Fragment): Shape {
  return values.map((value) => {
    if (value instanceof Fragment) return { strings: value.strings, shape: shapeOf(value) };
    return value instanceof ConstantSql ? value.text : undefined;
  });
}

function append({ strings, values }: Fragment, parameters: (string | Buffer | null)[]): string {
  let text = strings[0] ?? "";
  values.forEach((value, index) => {
    if (value instanceof Fragment) text += append(value, parameters);
    else if (value instanceof ConstantSql) text += value.text;
    else text += `$${parameters.push(toParameter(value, parameters.length + 1))}`;
    text += strings[index + 1] ?? "";
  });
  return text;
}

/** The texts of a template: the same whenever its constants and its inner templates are. The newest shapes are kept. */
const knownTexts = new WeakMap<TemplateStringsArray, readonly KnownText[]>();
const MOST_SHAPES = 8;
const digests = new Map<string, string>();

function digestOf(text: string): string {
  const known = digests.get(text);
  if (known !== undefined) return known;
  const digest = createHash("sha256").update(text).digest("base64url").slice(0, 24);
  digests.set(text, digest);
  return digest;
}
