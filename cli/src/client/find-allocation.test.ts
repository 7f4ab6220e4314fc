// What `holdfast allocation show` and `release` take for the allocation: an id, or user@node.

import { CallError, type Client } from "@holdfast/contracts/client";
import { getAllocation, listAllocations } from "@holdfast/contracts/endpoints/allocations";
import { listNodes } from "@holdfast/contracts/endpoints/nodes";
import type { ErrorEnvelope } from "@holdfast/contracts/errors";
import { describe, expect, it } from "vitest";
import { allocationIdOf, findAllocation } from "./find-allocation.ts";

const id = (number: number) => `01a1e13c-bc3d-71c5-9b58-${String(number).padStart(12, "0")}`;
const nodes = [
  { id: id(1), name: "rock-1" },
  { id: id(2), name: "rock-2" },
];
/** Newest first, as the server lists them. */
const allocations = [
  { id: id(16), username: "carol", node_id: id(1), node_name: "rock-1", status: "releasing" },
  { id: id(15), username: "alice", node_id: id(1), node_name: "rock-1", status: "failed" },
  { id: id(14), username: "bob", node_id: id(1), node_name: "rock-1", status: "active" },
  { id: id(13), username: "alice", node_id: id(2), node_name: "rock-2", status: "active" },
  { id: id(12), username: "alice", node_id: id(1), node_name: "rock-1", status: "active" },
  { id: id(11), username: "carol", node_id: id(1), node_name: "rock-1", status: "released" },
];

/** Answers like a server with these, one allocation to a page; and records which endpoints were called. */
function server() {
  const called: unknown[] = [];
  const client = async (
    endpoint: unknown,
    { params = {}, query = {} }: Record<string, Record<string, string>>,
  ) => {
    called.push(endpoint);
    if (endpoint === listNodes) {
      const items = query["state"] === "present" ? nodes.filter(({ name }) => name === query["name"]) : [];
      return { items, total: items.length };
    }
    if (endpoint === listAllocations) {
      const all = allocations.filter(
        ({ node_id, status }) =>
          node_id === (query["node_id"] ?? node_id) && status === (query["status"] ?? status),
      );
      const at = Number(query["cursor"] ?? 0);
      return { items: all.slice(at, at + 1), next_cursor: at + 1 < all.length ? String(at + 1) : null };
    }
    const found = endpoint === getAllocation && allocations.find((one) => one.id === params["allocation_id"]);
    if (found) return found;
    throw new CallError(404, { code: "not_found", message: "Not found." } as ErrorEnvelope);
  };
  return { client: client as unknown as Client, called };
}

describe("an allocation named on the command line", () => {
  it.for([
    ["alice@rock-1", id(12)],
    ["alice@rock-2", id(13)],
    ["alice@ROCK-1", id(12)],
    ["carol@rock-1", id(16)],
    ["bob@rock-1", id(14)],
  ] as const)("%s is the active one of that user on that node, or the newest", async ([wanted, expected]) => {
    const { client } = server();
    expect(await allocationIdOf(client, wanted)).toBe(expected);
    expect((await findAllocation(client, wanted)).id).toBe(expected);
  });

  it("is left to the server when it is an id, which audits what it rejects", async () => {
    const { client, called } = server();
    expect(await allocationIdOf(client, id(99).toUpperCase())).toBe(id(99));
    expect(called).toEqual([]);
  });

  it.for(["dave@rock-1", "alice", id(99)])("%s is not found, with what there is", async (wanted) => {
    const { client } = server();
    await expect(findAllocation(client, wanted)).rejects.toMatchObject({
      code: "not_found",
      message: `Allocation "${wanted}" not found in this organization, or you have no access.`,
      nextStep: expect.stringContaining("bob@rock-1"),
    });
  });
});
