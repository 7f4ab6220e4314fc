// Nodes over HTTP, for operators.

import type { FleetFilter } from "@holdfast/contracts/endpoints/fleet";
import {
  changeNode,
  getNode,
  listNodeDiagnostics,
  listNodes,
  type NodeDetail,
  updateNode,
} from "@holdfast/contracts/endpoints/nodes";
import { ApiError } from "@holdfast/contracts/errors";
import type { ApiContext } from "../../api/context.ts";
import { pageStart, toPage } from "../../api/page.ts";
import { type OrgCall, orgRoute } from "../../api/route.ts";
import type { Tx } from "../../database/connect.ts";
import {
  nodeDetailForTenant,
  nodeForTenant,
  refuseSearchByReason,
  seesReasons,
} from "../../drift/tenants/redact.ts";
import { isFiltered, matches } from "../../fleet/filter.ts";
import { selectHealth } from "../presence/health.ts";
import { selectDiagnostics } from "../presence/presence.ts";
import { toNode, toNodeDetail } from "./describe.ts";
import {
  type ColumnFilter,
  type NodeRow,
  revokeTokensFor,
  selectNode,
  selectNodes,
  selectNodesById,
  updateNodeRow,
} from "./queries.ts";
import { isRevoked, moveNode } from "./state.ts";

type ListQuery = Omit<OrgCall<typeof listNodes>["query"], "cursor" | "limit">;
type PageAt = { before: string; limit: number };

export function nodeRoutes(api: ApiContext): void {
  const rules = { staleAfterSeconds: api.nodes.staleAfterSeconds };

  /** What needs attention and what agents reported are not columns: they are looked up in the fleet. */
  const selectFromFleet = async (
    { tx, org }: OrgCall<typeof listNodes>,
    { name, status, ...filter }: FleetQuery,
    page: PageAt,
  ) => {
    const found = api.fleets
      .known(org.id)
      .nodes.filter(
        (node) =>
          (name === undefined || node.name === name) &&
          (status === undefined || node.status === status) &&
          matches(node, filter),
      )
      .map(({ id }) => id);
    const ids = found
      .filter((id) => id < page.before)
      .sort()
      .reverse();
    return { rows: await selectNodesById(tx, ids.slice(0, page.limit + 1)), total: found.length };
  };

  orgRoute(
    api,
    listNodes,
    async (call) => {
      const { cursor, limit, ...query } = call.query;
      const page = { before: pageStart(listNodes, cursor), limit };
      const source = sourceOf(query);
      const { rows, total } =
        "columns" in source
          ? await selectNodes(call.tx, source.columns, page)
          : await selectFromFleet(call, source.fleet, page);
      const toItem = (row: NodeRow) =>
        seesReasons(call) ? toNode(row, rules) : nodeForTenant(toNode(row, rules));
      return { ...toPage(listNodes, rows, { limit, idOf: (row) => row.id, toItem }), total };
    },
    {
      waitFirst: async (call) => {
        const { org, query: all } = call;
        const { cursor, limit, ...query } = all;
        refuseSearchByReason(seesReasons(call), query);
        if ("fleet" in sourceOf(query)) await api.fleets.current(org.id);
      },
    },
  );

  const detail = async (tx: Tx, id: string): Promise<NodeDetail> => {
    const [row, health] = await Promise.all([requireNode(tx, id), selectHealth(tx, id)]);
    return toNodeDetail(row, health, rules);
  };

  orgRoute(api, getNode, async (call) => {
    const node = await detail(call.tx, call.params.node_id);
    return seesReasons(call) ? node : nodeDetailForTenant(node);
  });

  orgRoute(api, updateNode, async ({ tx, params, body, touched }) => {
    const before = await requireNode(tx, params.node_id);
    const name = body.name ?? before.name;
    await updateNodeRow(tx, before.id, body).catch(explainTaken(name));
    const { provider, network_side } = body;
    const renamed = body.name === undefined ? {} : { before: before.name };
    touched({ type: "node", id: before.id, name }, { ...renamed, provider, network_side });
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
    // An unused token could enroll the node again.
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

type FleetQuery = FleetFilter & Pick<ListQuery, "name" | "status">;

/** The fleet contains no retired nodes, so filters on reported values match none of them. */
function sourceOf({ state, ...query }: ListQuery): { columns: ColumnFilter } | { fleet: FleetQuery } {
  const { name, status, search, ...reported } = query;
  const retired = state === "retired" || status === "retired";
  const inColumns = state === undefined || state === "present" || state === "retired";
  if (inColumns && !isFiltered(reported) && (search === undefined || retired))
    return { columns: { name, status, state, search } };
  return { fleet: state === "retired" ? { ...query, status: "retired" } : { ...query, state } };
}

async function requireNode(tx: Tx, id: string): Promise<NodeRow> {
  const row = await selectNode(tx, id);
  if (!row) throw new ApiError("not_found");
  return row;
}

/** The unique index refuses a second node of the same name, also for concurrent requests. */
function explainTaken(name: string): (error: { code?: string }) => never {
  return (error) => {
    if (error.code !== "23505") throw error;
    throw new ApiError("name_taken", { message: `Another node is named ${name}.` });
  };
}
