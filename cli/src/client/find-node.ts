// Finds the node a person means: by id, or by name.

import { CallError, type Client } from "@holdfast/contracts/client";
import { getNode, listNodes, type Node } from "@holdfast/contracts/endpoints/nodes";
import { Refusal } from "../failure.ts";

const idForm = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const mostListed = 10;

export function isNodeId(wanted: string): boolean {
  return idForm.test(wanted);
}

export async function findNode(client: Client, wanted: string): Promise<Node> {
  const found = isNodeId(wanted) ? await byId(client, wanted) : await byName(client, wanted.toLowerCase());
  if (found) return found;
  const { items, next_cursor } = await client(listNodes, { query: { limit: mostListed } });
  const names = items.filter(({ status }) => status !== "retired").map(({ name }) => name);
  throw new Refusal("not_found", {
    message: `There is no node "${wanted}" in this organization.`,
    nextStep:
      names.length === 0
        ? "There is none at all yet: `holdfast node token create` tells how a machine becomes one."
        : `There are: ${names.join(", ")}${next_cursor ? " and more" : ""}. \`holdfast node list\` shows all of them.`,
  });
}

async function byId(client: Client, id: string): Promise<Node | undefined> {
  try {
    return await client(getNode, { params: { node_id: id } });
  } catch (error) {
    if (error instanceof CallError && error.envelope.code === "not_found") return undefined;
    throw error;
  }
}

/** A retired node may have had the same name. */
async function byName(client: Client, name: string): Promise<Node | undefined> {
  if (name.length > 64) return undefined;
  const { items } = await client(listNodes, { query: { name } });
  return items.find(({ status }) => status !== "retired") ?? items[0];
}
