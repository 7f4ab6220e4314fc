// Finds the node a person means: by id, or by name.

import type { Client } from "@holdfast/contracts/client";
import { getNode, listNodes, type Node } from "@holdfast/contracts/endpoints/nodes";
import { Refusal } from "../failure.ts";
import { ifFound } from "./if-found.ts";

const idForm = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const mostSuggested = 10;

export function isNodeId(wanted: string): boolean {
  return idForm.test(wanted);
}

export async function findNode(client: Client, wanted: string): Promise<Node> {
  const found = isNodeId(wanted)
    ? await ifFound(client(getNode, { params: { node_id: wanted } }))
    : await byName(client, wanted.toLowerCase());
  if (found) return found;
  throw new Refusal("not_found", {
    message: `Node "${wanted}" not found in this organization.`,
    nextStep: await suggestion(client, wanted),
  });
}

/** Part of a name is not enough to act on: `web-1` may be gone, and `web-10` is another machine. */
async function suggestion(client: Client, wanted: string): Promise<string> {
  const search = wanted.slice(0, 100);
  const alike =
    search === ""
      ? undefined
      : await client(listNodes, { query: { search, state: "present", limit: mostSuggested } });
  if (alike && alike.total > 0) return `Similar names: ${namesOf(alike)}.`;
  const all = await client(listNodes, { query: { state: "present", limit: mostSuggested } });
  if (all.total === 0) return "There are no nodes yet. Add one with `holdfast node token create`.";
  return `Nodes: ${namesOf(all)}. List all with \`holdfast node list\`.`;
}

function namesOf({ items, total }: { items: Node[]; total: number }): string {
  const others = total - items.length;
  return items.map(({ name }) => name).join(", ") + (others > 0 ? ` and ${others} more` : "");
}

/** Several retired nodes may have had the same name: the newest wins, unless a node has the name now. */
async function byName(client: Client, name: string): Promise<Node | undefined> {
  if (name.length > 64) return undefined;
  for (const state of ["present", "retired"] as const) {
    const { items } = await client(listNodes, { query: { name, state, limit: 1 } });
    if (items[0]) return items[0];
  }
  return undefined;
}
