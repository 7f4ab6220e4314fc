// Finds the allocation a person means: by id, or as user@node.

import type { Client } from "@holdfast/contracts/client";
import { type Allocation, getAllocation, listAllocations } from "@holdfast/contracts/endpoints/allocations";
import { Refusal } from "../failure.ts";
import { findNode, isNodeId as isId } from "./find-node.ts";
import { ifFound } from "./if-found.ts";
import { everyPage } from "./pages.ts";

export async function findAllocation(client: Client, wanted: string): Promise<Allocation> {
  const at = wanted.lastIndexOf("@");
  const found =
    at < 0 ? await byId(client, wanted) : await byUser(client, wanted.slice(0, at), wanted.slice(at + 1));
  if (found) return found;
  throw new Refusal("not_found", {
    message: `Allocation "${wanted}" not found in this organization, or you have no access.`,
    nextStep: `Use its id or user@node. ${await suggestion(client)}`,
  });
}

/** An id is not looked up: the server decides about it, and audits an attempt that it rejects. */
export async function allocationIdOf(client: Client, wanted: string): Promise<string> {
  return isId(wanted) ? wanted.toLowerCase() : (await findAllocation(client, wanted)).id;
}

async function byId(client: Client, id: string): Promise<Allocation | undefined> {
  if (!isId(id)) return undefined;
  return ifFound(client(getAllocation, { params: { allocation_id: id.toLowerCase() } }));
}

/** The same name may have been used before: the newest allocation wins. */
async function byUser(client: Client, user: string, nodeName: string): Promise<Allocation | undefined> {
  const node = await findNode(client, nodeName);
  const all = await everyPage((cursor) =>
    client(listAllocations, { query: { cursor, node_id: node.id, limit: 200 } }),
  );
  const own = all.filter(({ username }) => username === user);
  return own.find(({ status }) => status === "active") ?? own[0];
}

const mostListed = 10;

async function suggestion(client: Client): Promise<string> {
  const { items } = await client(listAllocations, { query: { status: "active", limit: mostListed } });
  if (items.length === 0) return "There are no ready allocations. Create one with `holdfast allocation create`.";
  return `Ready allocations: ${items.map(({ username, node_name }) => `${username}@${node_name}`).join(", ")}.`;
}
