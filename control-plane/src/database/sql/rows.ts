// Rows of values as a part of a statement. One row becomes plain parameters, which PostgreSQL treats as constants of the
// plan; several become one array for each column. Both have the same columns, so the rest of a statement is written once.

import { Fragment, type TemplateValue } from "./template.ts";
import { type Parameter, toParameter } from "./values.ts";

/** A type such as `uuid`, or `uuid[]` for a column of arrays, and the value of an item. */
type Column<Item> = readonly [type: string, read: (item: Item) => Parameter];
type Columns<Item> = Readonly<Record<string, Column<Item>>>;

/** Returns the SELECT of these columns for the items, of which there is at least one. */
export function rowsOf<Item>(columns: Columns<Item>): (items: readonly Item[]) => Fragment {
  const entries = Object.entries(columns);
  const texts = { one: textOfOne(entries), many: textOfMany(entries) };
  return (items) => {
    const [item, another] = items;
    if (item === undefined) throw new Error("a statement for no rows");
    if (another !== undefined)
      return new Fragment(
        texts.many,
        entries.map(([, column]) => arrayOf(column, items)),
      );
    return new Fragment(
      texts.one,
      entries.map(([, [, read]]) => read(item)),
    );
  };
}

type Entries = [name: string, column: Column<never>][];

function textOfOne(entries: Entries): TemplateStringsArray {
  return stringsOf(
    "SELECT ",
    entries.map(([name, [type]]) => `::${type} AS ${name}`),
    "",
  );
}

function textOfMany(entries: Entries): TemplateStringsArray {
  const names = entries.map(([name]) => name).join(", ");
  const selected = entries
    .map(([name, [type]]) => (isArray(type) ? `r.${name}::${type}` : `r.${name}`))
    .join(", ");
  return stringsOf(
    `SELECT ${selected} FROM unnest(`,
    // An array of arrays would have to be rectangular: each travels as its text.
    entries.map(([, [type]]) => `::${isArray(type) ? "text" : type}[]`),
    `) AS r (${names})`,
  );
}

function arrayOf<Item>([type, read]: Column<Item>, items: readonly Item[]): TemplateValue {
  if (!isArray(type)) return items.map(read);
  return items.map((item) => toParameter(read(item), 0));
}

const isArray = (type: string) => type.endsWith("[]");

/** As a tagged template has them: one text before, between and after the parameters. */
function stringsOf(before: string, afterEach: string[], after: string): TemplateStringsArray {
  const texts = afterEach.map((text, index) => (index < afterEach.length - 1 ? `${text}, ` : `${text}${after}`));
  const strings = [before, ...texts];
  return Object.assign(strings, { raw: strings });
}
