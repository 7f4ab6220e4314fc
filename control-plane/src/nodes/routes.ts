// Nodes over HTTP, for operators.

import {
  changeNode,
  getNode,
  listNodeDiagnostics,
  listNodes,
  type NodeDetail,
  renameNode,
} from "@holdfast/contracts/endpoints/nodes";
import { ApiError } from "@holdfast/contracts/errors";
import type { ApiContext } from "../api/context.ts";
import { pageStart, toPage } from "../api/page.ts";
import { orgRoute } from "../api/route.ts";
import type { Tx } from "../database/connect.ts";
import { type Moment, toNode, toNodeDetail } from "./describe.ts";
import { selectHealth } from "./health.ts";
import { selectDiagnostics } from "./presence.ts";
import { type NodeRow, revokeTokensFor, selectNode, selectNodes, updateName } from "./queries.ts";
import { isRevoked, moveNode } from "./state.ts";

export function nodeRoutes(api: ApiContext): void {
  const moment = (): Moment => ({ now: new Date(), staleAfterSeconds: api.nodes.staleAfterSeconds });

  orgRoute(api, listNodes, async ({ tx, query }) => {
    const { cursor, limit, ...filter } = query;
    const rows = await selectNodes(tx, filter, { before: pageStart(listNodes, cursor), limit });
    const at = moment();
    return toPage(listNodes, rows, { limit, idOf: (row) => row.id, toItem: (row) => toNode(row, at) });
  });

  const detail = async (tx: Tx, id: string): Promise<NodeDetail> => {
    const [row, health] = await Promise.all([requireNode(tx, id), selectHealth(tx, id)]);
    return toNodeDetail(row, health, moment());
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
