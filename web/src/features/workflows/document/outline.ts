// What a graph shows of a document: its nodes and edges, also while the document has problems.

import type { Port, WorkflowDocument } from "@holdfast/workflows/document/schema";
import { isMap, isScalar, isSeq, parseDocument } from "yaml";

export type OutlineNode = { id: string; type: string; title: string | undefined; after: string[] };

/** Undefined: the text is no YAML, or no document with nodes. */
export function outlineOf(text: string): OutlineNode[] | undefined {
  const parsed = parseDocument(text, { schema: "core", version: "1.2" });
  if (parsed.errors.length > 0 || !isMap(parsed.contents)) return undefined;
  const nodes = parsed.contents.get("nodes");
  if (nodes === null || nodes === undefined) return [];
  if (!isMap(nodes)) return undefined;
  return nodes.items.flatMap(({ key, value }): OutlineNode[] => {
    if (!isScalar(key)) return [];
    const field = (name: string) => (isMap(value) ? value.get(name, true) : undefined);
    return [
      {
        id: String(key.value),
        type: textOf(field("type")) ?? "",
        title: textOf(field("title")),
        after: textsOf(field("after")),
      },
    ];
  });
}

export function outlineOfDocument({ nodes }: WorkflowDocument): OutlineNode[] {
  return Object.entries(nodes).map(([id, { type, title, after = [] }]) => ({ id, type, title, after }));
}

export type GraphEdge = { from: string; port: Port; to: string };

/** Edges between nodes that exist, each once. */
export function edgesOf(nodes: readonly OutlineNode[]): GraphEdge[] {
  const ids = new Set(nodes.map(({ id }) => id));
  return nodes.flatMap(({ id: to, after }) =>
    [...new Set(after)].flatMap((text) => {
      const [from = "", port = "succeeded"] = text.split(".");
      return ids.has(from) ? [{ from, port: port as Port, to }] : [];
    }),
  );
}

/** As it stands in `after`. */
export const edgeText = ({ from, port }: Pick<GraphEdge, "from" | "port">) =>
  port === "succeeded" ? from : `${from}.${port}`;

function textOf(node: unknown): string | undefined {
  return isScalar(node) && typeof node.value === "string" ? node.value : undefined;
}

function textsOf(node: unknown): string[] {
  return isSeq(node) ? node.items.flatMap((item) => textOf(item) ?? []) : [];
}
