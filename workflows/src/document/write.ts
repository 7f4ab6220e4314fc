// Writes a document as YAML or JSON, in the order of the schema, so that the same document is always the same text.

import { stringify } from "yaml";
import type { WorkflowDocument } from "./schema.ts";

export const documentFormats = ["yaml", "json"] as const;
export type DocumentFormat = (typeof documentFormats)[number];

export function writeWorkflow(document: WorkflowDocument, format: DocumentFormat): string {
  const ordered = inOrder(document);
  if (format === "json") return `${JSON.stringify(ordered, null, 2)}\n`;
  return stringify(ordered, { aliasDuplicateObjects: false, lineWidth: 0, version: "1.2" });
}

const first = ["version", "description", "triggers", "nodes", "output", "type", "title", "after"];

function inOrder({ nodes, ...rest }: WorkflowDocument): unknown {
  const ordered = Object.fromEntries(Object.entries(nodes).map(([id, node]) => [id, sorted(node)]));
  return sorted({ ...rest, nodes: ordered });
}

/** The fields that say what it is come first, then the others by name. */
function sorted(fields: object): object {
  const turn = (key: string) => first.indexOf(key) >>> 0;
  return Object.fromEntries(Object.entries(fields).toSorted(([a], [b]) => turn(a) - turn(b) || (a < b ? -1 : 1)));
}
