// Nodes over HTTP, for operators.

import type { FleetFilter } from "@holdfast/contracts/endpoints/fleet";
import {
  changeNode,
  getNode,
  listNodeDiagnostics,
  listNodes,
  type NodeDetail,
  renameNode,
} from "@holdfast/contracts/endpoints/nodes";
import { ApiError } from "@holdfast/contracts/errors";
import type { NodeStatus } from "@holdfast/contracts/node-protocol";
import type { ApiContext } from "../api/context.ts";
import { pageStart, toPage } from "../api/page.ts";
import { type OrgCall, orgRoute } from "../api/route.ts";
import type { Tx } from "../database/connect.ts";
import { isFiltered, matches } from "../fleet/filter.ts";
import { toNode, toNodeDetail } from "./describe.ts";
import { selectHealth } from "./health.ts";
import { selectDiagnostics } from "./presence.ts";
import { type NodeRow, revokeTokensFor, selectNode, selectNodes, selectNodesById, updateName } from "./queries.ts";
import { isRevoked, moveNode } from "./state.ts";

type NameAndStatus = { name?: string | undefined; status?: NodeStatus | undefined };
type PageAt = { before: string; limit: number };

export function nodeRoutes(api: ApiContext): void {
  const rules = { staleAfterSeconds: api.nodes.staleAfterSeconds };

  /** Ids of one page, and one more if there is another. What needs attention is no column: it is found in the fleet. */
  const findNodes = (orgId: string, query: FleetFilter & NameAndStatus, page: PageAt): string[] => {
    const { name, status, ...filter } = query;
    const { nodes } = api.fleets.known(orgId);
    const found = nodes.filter(
      (node) =>
        node.id < page.before &&
        (name === undefined || node.name === name) &&
        (status === undefined || node.status === status) &&
        matches(node, filter),
    );
    return found
      .map(({ id }) => id)
      .sort()
      .reverse()
      .slice(0, page.limit + 1);
  };

  /** Retired nodes are no part of the fleet, and can be looked for by name and id only. */
  const isOfFleet = ({ status, search, ...filter }: FleetFilter & NameAndStatus) =>
    isFiltered(filter) || (search !== undefined && status !== "retired");

  const list = async ({ tx, org, query }: OrgCall<typeof listNodes>) => {
    const { cursor, limit, name, status, ...filter } = query;
    const page = { before: pageStart(listNodes, cursor), limit };
    const rows = isOfFleet({ status, ...filter })
      ? await selectNodesById(tx, findNodes(org.id, { name, status, ...filter }, page))
      : await selectNodes(tx, { name, status, search: filter.search }, page);
    return toPage(listNodes, rows, { limit, idOf: (row) => row.id, toItem: (row) => toNode(row, rules) });
  };
  orgRoute(api, listNodes, list, {
    waitFirst: async ({ org, query: { cursor, limit, name, ...filter } }) => {
      if (isOfFleet(filter)) await api.fleets.current(org.id);
    },
  });

  const detail = async (tx: Tx, id: string): Promise<NodeDetail> => {
    const [row, health] = await Promise.all([requireNode(tx, id), selectHealth(tx, id)]);
    return toNodeDetail(row, health, rules);
  };

  orgRoute(api, getNode, async ({ tx, params }) => detail(tx, params.node_id));

  orgRoute(api, renameNode, async ({ tx, params, body, touched }) => {
    const before = await requireNode(tx, params.node_id);
    await updateName(tx, before.id, body.name).catch(explainTaken(body.name));
    touched({ type: "node", id: before.id, name: body.name }, { before: before.name });
    return detail(tx, before.id);
  });

  orgRoute(api, changeNode, async (call): Promise<NodeDetail> => {
    const { tx, params, body } = call;
    const moved = await moveNode(tx, params.node_id, body.change, { reason: body.reason });
    if (!moved) throw new ApiError("not_found");
    const { row } = moved;
    if ("refused" in moved) {
      const details = { status: row.status, revoked: row.revoked_at !== null, change: body.change };
      throw new ApiError("node_change_refused", {
        message: `${row.name} cannot ${body.change} now. ${moved.refused}`,
        details,
      });
    }
    const { from, to } = moved;
    // A token that lies about would take the node in again.
    if (isRevoked(to)) await revokeTokensFor(tx, row.id);
    call.touched({ type: "node", id: row.id, name: row.name }, { change: body.change, from, to });
    call.afterCommit(() => api.nodes.directory.changed(moved));
    return detail(tx, row.id);
  });

  orgRoute(api, listNodeDiagnostics, async ({ tx, params }) => {
    const node = await requireNode(tx, params.node_id);
    return { items: await selectDiagnostics(tx, node.id) };
  });
}

async function requireNode(tx: Tx, id: string): Promise<NodeRow> {
  const row = await selectNode(tx, id);
  if (!row) throw new ApiError("not_found");
  return row;
}

/** The index of names refuses the second of two, also when both are given at once. */
function explainTaken(name: string): (error: { code?: string }) => never {
  return (error) => {
    if (error.code !== "23505") throw error;
    throw new ApiError("name_taken", { message: `Another node is called ${name}.` });
  };
}
