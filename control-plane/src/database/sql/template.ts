// The text of a statement and its parameters, from a tagged template. A value becomes a numbered parameter and never part
// of the text; a nested template, or an identifier, becomes part of the text. Nothing here talks to a database.

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

/** A name of a table or column, quoted. */
export class Identifier {
  readonly text: string;
  constructor(name: string) {
    this.text = `"${name.replaceAll('"', '""')}"`;
  }
}

export type TemplateValue = Parameter | Fragment | Identifier;

export type Statement = {
  text: string;
  values: (string | Buffer | null)[];
  /** Differs for every text: what prepared statements are named after. */
  digest: string;
};

type Text = Pick<Statement, "text" | "digest">;

export function compile(fragment: Fragment): Statement {
  const { strings, values } = fragment;
  const known = flatTexts.get(strings);
  if (known && values.every(isParameter)) {
    return { ...known, values: values.map((value, index) => toParameter(value as Parameter, index + 1)) };
  }
  const parameters: (string | Buffer | null)[] = [];
  const text = append(fragment, parameters);
  const made = { text, digest: digestOf(text) };
  if (values.every(isParameter)) flatTexts.set(strings, made);
  return { ...made, values: parameters };
}

function append({ strings, values }: Fragment, parameters: (string | Buffer | null)[]): string {
  let text = strings[0] ?? "";
  values.forEach((value, index) => {
    if (value instanceof Fragment) text += append(value, parameters);
    else if (value instanceof Identifier) text += value.text;
    else text += `$${parameters.push(toParameter(value, parameters.length + 1))}`;
    text += strings[index + 1] ?? "";
  });
  return text;
}

const isParameter = (value: TemplateValue) => !(value instanceof Fragment || value instanceof Identifier);

/** The texts of templates without nested parts, which are the same every time. */
const flatTexts = new WeakMap<TemplateStringsArray, Text>();
const digests = new Map<string, string>();

function digestOf(text: string): string {
  const known = digests.get(text);
  if (known !== undefined) return known;
  const digest = createHash("sha256").update(text).digest("base64url").slice(0, 24);
  digests.set(text, digest);
  return digest;
}
