// What people read for types of nodes and for the ways in which they end.

import type { Node, Port } from "@holdfast/workflows/document/schema";

export const typeWords: Record<Node["type"], string> = {
  "agent.execute": "Script on an agent",
  "http.request": "HTTP request",
  "connector.action": "Connector",
  condition: "Condition",
  parallel: "Parallel",
  join: "Join",
  wait: "Wait",
};

export const nodeTypes = Object.keys(typeWords) as Node["type"][];

export const isNodeType = (type: string): type is Node["type"] => Object.hasOwn(typeWords, type);

export const wordForType = (type: string) => (isNodeType(type) ? typeWords[type] : type || "No type yet");

export const portWords: Record<Port, string> = {
  succeeded: "succeeded",
  failed: "failed",
  true: "true",
  false: "false",
};

/** The ways in which a node of this type can end; of an unknown type, all that a step has. */
export function portsOfType(type: string): readonly Port[] {
  if (type === "condition") return ["true", "false", "failed"];
  return type === "parallel" || type === "join" ? ["succeeded"] : ["succeeded", "failed"];
}
