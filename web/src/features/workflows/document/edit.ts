// What one does to a workflow in the graph and in the panel, as changes of its text.

import { cutTemplate } from "@holdfast/workflows/expressions/template";
import { type Document, isMap, isScalar, isSeq, type Scalar, visit } from "yaml";
import { emptyDocument } from "../empty-document.ts";
import { edgeText, type GraphEdge } from "./outline.ts";
import { renameInExpression } from "./references.ts";
import { changeAt, type Path, parse } from "./splice.ts";

/** Undefined removes the field. */
export function setField(text: string, path: Path, value: unknown): string {
  return changeAt(text, path, (document) => {
    if (value === undefined) document.deleteIn(path);
    else document.setIn(path, isScalarValue(value) ? value : createNode(document, value));
  });
}

const isScalarValue = (value: unknown) => typeof value !== "object" || value === null;

/** Edges in a line, everything else as YAML is usually written. */
function createNode(document: Document, value: unknown): unknown {
  const node = document.createNode(value);
  visit(document.createPair("", node) as never, {
    Pair: (_, { key, value: list }) => {
      if (isScalar(key) && key.value === "after" && isSeq(list)) list.flow = true;
    },
  });
  return node;
}

/** Behind all others. */
export function addNode(text: string, id: string, fields: object): string {
  const whole = parse(text).contents === null ? `${text}${emptyDocument}` : text;
  const nodes = parse(whole).get("nodes");
  if (isMap(nodes) && nodes.items.length > 0) return setField(whole, ["nodes", id], fields);
  return changeAt(whole, ["nodes"], (document) => {
    const created = createNode(document, { [id]: fields });
    document.set("nodes", created);
  });
}

export function removeNode(text: string, id: string): string {
  const without = edgesFrom(text, id).reduce(disconnect, text);
  return setField(without, ["nodes", id], undefined);
}

/** All edges, as they are written, also twice. */
function edgesFrom(text: string, id: string): GraphEdge[] {
  return afterLists(parse(text)).flatMap(([to, items]) =>
    items.flatMap((item) => {
      const [from, port = "succeeded"] = String(item.value).split(".");
      return from === id ? [{ from, port: port as GraphEdge["port"], to }] : [];
    }),
  );
}

function afterLists(document: Document): [string, Scalar[]][] {
  const nodes = isMap(document.contents) ? document.get("nodes") : undefined;
  if (!isMap(nodes)) return [];
  return nodes.items.flatMap(({ key, value }): [string, Scalar[]][] => {
    const list = isMap(value) ? value.get("after") : undefined;
    return isScalar(key) && isSeq(list) ? [[String(key.value), list.items.filter((item) => isScalar(item))]] : [];
  });
}

export function connect(text: string, edge: GraphEdge): string {
  const path = ["nodes", edge.to, "after"];
  return changeAt(text, path, (document) => {
    const list = document.getIn(path);
    if (!isSeq(list)) document.setIn(path, flowList(document, [edgeText(edge)]));
    else if (!list.items.some((item) => isScalar(item) && item.value === edgeText(edge))) list.add(edgeText(edge));
  });
}

function flowList(document: Document, items: string[]): unknown {
  const list = document.createNode(items);
  list.flow = true;
  return list;
}

export function disconnect(text: string, edge: GraphEdge): string {
  const path = ["nodes", edge.to, "after"];
  return changeAt(text, path, (document) => {
    const list = document.getIn(path);
    if (!isSeq(list)) return;
    list.items = list.items.filter((item) => !(isScalar(item) && item.value === edgeText(edge)));
    if (list.items.length === 0) document.deleteIn(path);
  });
}

/** With the edges that follow it, and the expressions that read it. */
export function renameNode(text: string, from: string, to: string): string {
  const document = parse(text);
  const nodes = isMap(document.contents) ? document.get("nodes") : undefined;
  if (document.errors.length > 0 || !isMap(nodes)) return text;
  const key = nodes.items.map((pair) => pair.key).find((one) => isScalar(one) && one.value === from);
  const edges = afterLists(document).flatMap(([, items]) =>
    items.filter(({ value }) => String(value).split(".")[0] === from),
  );
  const places = [key, ...edges].flatMap((scalar) => (isScalar(scalar) && scalar.range ? [scalar.range] : []));
  const renamed = places
    .toSorted((a, b) => b[0] - a[0])
    .reduce((all, [start, end]) => {
      return all.slice(0, start) + all.slice(start, end).replace(from, to) + all.slice(end);
    }, text);
  return renameReferences(renamed, from, to);
}

function renameReferences(text: string, from: string, to: string): string {
  const changes: [Path, string][] = [];
  const look = (value: unknown, path: Path): void => {
    if (typeof value === "string") {
      const isCondition = path.length === 3 && path[0] === "nodes" && path[2] === "if";
      const next = isCondition ? renameInExpression(value, from, to) : renameInTemplate(value, from, to);
      if (next !== value) changes.push([path, next]);
    } else if (Array.isArray(value) || (typeof value === "object" && value !== null)) {
      for (const [key, one] of Object.entries(value)) look(one, [...path, key]);
    }
  };
  look(parse(text).toJS(), []);
  return changes.reduce((all, [path, next]) => setField(all, path, next), text);
}

function renameInTemplate(text: string, from: string, to: string): string {
  const { pieces } = cutTemplate(text);
  return pieces
    .flatMap((piece) => ("expression" in piece ? [piece] : []))
    .toReversed()
    .reduce((all, { expression, offset }) => {
      const end = offset + expression.length;
      return all.slice(0, offset) + renameInExpression(expression, from, to) + all.slice(end);
    }, text);
}

/** What the panel shows of a node; undefined where it is none. */
export function fieldsOf(text: string, id: string): Record<string, unknown> | undefined {
  const document = parse(text);
  if (document.errors.length > 0) return undefined;
  const found = (document.toJS() as { nodes?: Record<string, unknown> } | null)?.nodes?.[id];
  return typeof found === "object" && found !== null ? (found as Record<string, unknown>) : undefined;
}
