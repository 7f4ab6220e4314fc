// Changes a place in a YAML text and leaves every other character as it is. The change is made to the parsed document; then only the
// lines of the changed field are written anew. Where that would not give the same document, all of it is written anew, with its
// comments: the content is always right, the format as far as possible.

import {
  type Document,
  isAlias,
  isCollection,
  isMap,
  isScalar,
  type Pair,
  parseDocument,
  YAMLMap,
  type YAMLSeq,
  Document as YamlDocument,
} from "yaml";

export type Path = readonly string[];

export const parse = (text: string): Document => parseDocument(text, { schema: "core", version: "1.2" });

/** `modify` changes what is at the path, and nothing else. A text that cannot be read, or changed there, stays as it is. */
export function changeAt(text: string, path: Path, modify: (document: Document) => void): string {
  const wanted = parse(text);
  if (wanted.errors.length > 0) return text;
  try {
    modify(wanted);
  } catch {
    // Behind an alias, for example: what it stands for is used elsewhere too.
    return text;
  }
  const spliced = attempt(() => {
    const changed = parse(text);
    modify(changed);
    return splice(text, parse(text), { changed, path });
  });
  return spliced !== undefined && means(spliced, wanted) ? spliced : wanted.toString({ lineWidth: 0 });
}

function attempt(make: () => string | undefined): string | undefined {
  try {
    return make();
  } catch {
    return undefined;
  }
}

function means(text: string, wanted: Document): boolean {
  const parsed = parse(text);
  return parsed.errors.length === 0 && JSON.stringify(parsed.toJS()) === JSON.stringify(wanted.toJS());
}

/** Undefined: not possible without writing more anew. */
function splice(
  text: string,
  before: Document,
  { changed, path }: { changed: Document; path: Path },
): string | undefined {
  let parent = before.contents;
  for (const [depth, key] of path.entries()) {
    if (!isMap(parent) || parent.flow || parent.items.length === 0) return undefined;
    const pair = pairOf(parent, key);
    const next = pairAt(changed, path.slice(0, depth + 1));
    if (!pair) return next && append(text, parent, next);
    if (!next) return remove(text, pair);
    const { value } = pair;
    if (depth === path.length - 1 || !isMap(value) || value.flow || value.items.length === 0) {
      return replace(text, pair, next);
    }
    parent = value;
  }
  return undefined;
}

function replace(text: string, pair: Pair, next: Pair): string {
  const start = startOf(pair);
  const written = write(next, columnOf(text, start));
  const end = endOf(text, pair);
  return text.slice(0, start) + written + text.slice(isBlock(pair.value) ? endOfLine(text, end) : end);
}

function append(text: string, parent: YAMLMap, next: Pair): string {
  const first = parent.items[0] as Pair;
  const last = parent.items.at(-1) as Pair;
  const column = columnOf(text, startOf(first));
  const end = endOfLine(text, endOf(text, last));
  return `${text.slice(0, end)}\n${" ".repeat(column)}${write(next, column)}${text.slice(end)}`;
}

/** With the comment directly above, which is about it. */
function remove(text: string, pair: Pair): string {
  const key = startOf(pair);
  const column = columnOf(text, key);
  let start = key - column;
  for (;;) {
    const above = text.lastIndexOf("\n", start - 2) + 1;
    if (start === 0 || !text.slice(above, start).startsWith(`${" ".repeat(column)}#`)) break;
    start = above;
  }
  const end = endOfLine(text, endOf(text, pair));
  return text.slice(0, start) + text.slice(Math.min(end + 1, text.length));
}

/** As it stands at this column, without the comments around it, which stay where they are. */
function write(pair: Pair, column: number): string {
  const { key } = pair;
  if (isScalar(key)) {
    key.commentBefore = undefined;
    key.spaceBefore = false;
  }
  if (isScalar(pair.value) || isCollection(pair.value)) pair.value.comment = undefined;
  dropCommentsBelow(pair.value);
  const holder = new YamlDocument();
  const map = new YAMLMap();
  map.items.push(pair);
  holder.contents = map as never;
  const lines = holder.toString({ lineWidth: 0 }).replace(/\n+$/, "").split("\n");
  return lines.map((line, index) => (index === 0 || line === "" ? line : " ".repeat(column) + line)).join("\n");
}

/** Of a collection: those on lines behind its last item. The item's own one, in its line, is part of it. */
function dropCommentsBelow(node: unknown): void {
  if (!isBlock(node)) return;
  node.comment = undefined;
  const last = node.items.at(-1);
  dropCommentsBelow(isPairLike(last) ? last.value : last);
}

const isBlock = (node: unknown): node is YAMLMap | YAMLSeq =>
  isCollection(node) && !node.flow && node.items.length > 0;

const pairOf = (map: YAMLMap, key: string) =>
  map.items.find((pair) => String(isScalar(pair.key) ? pair.key.value : pair.key) === key);

function pairAt(document: Document, path: Path): Pair | undefined {
  const parent = path.length === 1 ? document.contents : document.getIn(path.slice(0, -1), true);
  return isMap(parent) ? pairOf(parent, String(path.at(-1))) : undefined;
}

const rangeOf = (node: unknown) => (node as { range?: [number, number, number] | null } | null)?.range;

function startOf(pair: Pair): number {
  const range = rangeOf(pair.key);
  if (!range) throw new Error("no place in the text");
  return range[0];
}

/** Behind the last character of it that is no space and no comment. */
function endOf(text: string, item: unknown): number {
  const node = isPairLike(item) ? (item.value ?? item.key) : item;
  if (isBlock(node)) return endOf(text, node.items.at(-1));
  if (!isScalar(node) && !isAlias(node) && !isCollection(node)) throw new Error("no place in the text");
  const range = rangeOf(node);
  if (!range) throw new Error("no place in the text");
  const start = isPairLike(item) ? (rangeOf(item.key)?.[1] ?? range[0]) : range[0];
  const empty = isScalar(node) && node.value === null && range[0] === range[1];
  if (empty) return text.indexOf(":", start) + 1;
  return range[0] + text.slice(range[0], range[1]).trimEnd().length;
}

const isPairLike = (item: unknown): item is Pair =>
  typeof item === "object" && item !== null && "key" in item && "value" in item;

const columnOf = (text: string, offset: number) => offset - (text.lastIndexOf("\n", offset - 1) + 1);

function endOfLine(text: string, offset: number): number {
  const end = text.indexOf("\n", offset);
  return end === -1 ? text.length : end;
}
