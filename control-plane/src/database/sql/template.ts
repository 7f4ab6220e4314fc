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

/** The constants are what was inserted in place of each value; undefined stands for a parameter. */
type FlatText = Pick<Statement, "text" | "digest"> & { constants: readonly (string | undefined)[] };

export function compile(fragment: Fragment): Statement {
  const { strings, values } = fragment;
  const known = flatTexts.get(strings);
  if (known && values.every((value, index) => isConstantOf(known, value, index))) {
    const { text, digest } = known;
    return { text, digest, values: parametersOf(values) };
  }
  const parameters: (string | Buffer | null)[] = [];
  const text = append(fragment, parameters);
  const made = { text, digest: digestOf(text) };
  if (!values.some((value) => value instanceof Fragment)) {
    flatTexts.set(strings, { ...made, constants: values.map(constantOf) });
  }
  return { ...made, values: parameters };
}

function isConstantOf({ constants }: FlatText, value: TemplateValue, index: number): boolean {
  return !(value instanceof Fragment) && constantOf(value) === constants[index];
}

const constantOf = (value: TemplateValue) => (value instanceof ConstantSql ? value.text : undefined);

function parametersOf(values: readonly TemplateValue[]): Statement["values"] {
  const parameters = values.filter((value): value is Parameter => !(value instanceof ConstantSql));
  return parameters.map((value, index) => toParameter(value, index + 1));
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

/** The texts of templates without nested templates: they are the same whenever their constants are. */
const flatTexts = new WeakMap<TemplateStringsArray, FlatText>();
const digests = new Map<string, string>();

function digestOf(text: string): string {
  const known = digests.get(text);
  if (known !== undefined) return known;
  const digest = createHash("sha256").update(text).digest("base64url").slice(0, 24);
  digests.set(text, digest);
  return digest;
}
