// The edges of a workflow, as its nodes name them in `after`.

import type { Node, Port, WorkflowDocument } from "./schema.ts";

export type Edge = { from: string; port: Port };

export function edgeOf(text: string): Edge {
  const [from = "", port = "succeeded"] = text.split(".");
  return { from, port: port as Port };
}

export const edgesInto = (node: Node): Edge[] => (node.after ?? []).map(edgeOf);

/** The ways in which a node of this type can end. */
export function portsOf({ type }: Node): readonly Port[] {
  switch (type) {
    case "condition":
      return ["true", "false", "failed"];
    case "parallel":
    case "join":
      return ["succeeded"];
    default:
      return ["succeeded", "failed"];
  }
}

/** Every node that can have ended before the other one starts. Stands cycles. */
export function ancestorsOf(document: WorkflowDocument, id: string): Set<string> {
  const found = new Set<string>();
  const open = [id];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const node = document.nodes[next];
    if (node === undefined) continue;
    for (const { from } of edgesInto(node)) {
      if (found.has(from)) continue;
      found.add(from);
      open.push(from);
    }
  }
  return found;
}
