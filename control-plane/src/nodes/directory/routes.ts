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
import { readPlatform } from "../../drift/evidence/platform.ts";
import {
  nodeDetailForTenant,
  nodeForTenant,
  rankedForTenant,
  refuseSearchByReason,
  seesReasons,
} from "../../drift/tenants/redact.ts";
import { verdictNow } from "../../drift/verdicts/read.ts";
import { isFiltered, matches } from "../../fleet/filter.ts";
import { cursorAt, placeIn, worstFirst } from "../../fleet/order.ts";
import { selectHealth } from "../presence/health.ts";
import { selectDiagnostics } from "../presence/presence.ts";
import { toListed, toNodeDetail } from "./describe.ts";
import {
  type ColumnFilter,
  type ListedRow,
  type NodeRow,
  revokeTokensFor,
  selectNode,
  selectNodes,
  selectNodesById,
  updateNodeRow,
} from "./queries.ts";
import { isRevoked, moveNode } from "./state.ts";

type ListQuery = Omit<OrgCall<typeof listNodes>["query"], "cursor" | "limit">;
type PageAt = { cursor: string | undefined; limit: number };

export function nodeRoutes(api: ApiContext): void {
  const rules = api.nodes;

  /** What is wrong and what agents reported are no columns of a node: they are looked up in the fleet. */
  const selectFromFleet = async (
    call: OrgCall<typeof listNodes>,
    { name, status, order, ...filter }: FleetQuery,
    { cursor, limit }: PageAt,
  ) => {
    const { tx, org } = call;
    const found = api.fleets
      .known(org.id)
      .nodes.filter(
        (node) =>
          (name === undefined || node.name === name) &&
          (status === undefined || node.status === status) &&
          matches(node, filter),
      )
      .map((node) => (seesReasons(call) ? node : rankedForTenant(node)));
    const worst = order === "worst" ? worstFirst(found, placeIn(listNodes, cursor)) : undefined;
    const before = worst ? "" : pageStart(listNodes, cursor);
    const ids = (worst ?? found.filter(({ id }) => id < before).sort((a, b) => (a.id < b.id ? 1 : -1))).map(
      ({ id }) => id,
    );
    const rows = await selectNodesById(tx, ids.slice(0, limit + 1));
    const last = worst?.[limit - 1];
    const more = worst && worst.length > limit && last;
    return { rows, total: found.length, next: more ? cursorAt(listNodes, last) : worst ? null : undefined };
  };

  orgRoute(
    api,
    listNodes,
    async (call) => {
      const { cursor, limit, ...query } = call.query;
      const source = sourceOf(query);
      const { rows, total, next } =
        "columns" in source
          ? {
              ...(await selectNodes(call.tx, source.columns, { before: pageStart(listNodes, cursor), limit })),
              next: undefined,
            }
          : await selectFromFleet(call, source.fleet, { cursor, limit });
      const toItem = (row: ListedRow) =>
        seesReasons(call) ? toListed(row, rules) : nodeForTenant(toListed(row, rules));
      const page = toPage(listNodes, rows, { limit, idOf: (row) => row.id, toItem });
      return { ...page, ...(next === undefined ? {} : { next_cursor: next }), total };
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
    const platform = await readPlatform(api.system);
    const [row, health] = await Promise.all([requireNode(tx, id), selectHealth(tx, id)]);
    const verdict = await verdictNow(tx, id, { platform, policy: api.policy, now: row.read_at });
    return toNodeDetail(row, { health, verdict }, rules);
  };

  orgRoute(
    api,
    getNode,
    async (call) => {
      const node = await detail(call.tx, call.params.node_id);
      return seesReasons(call) ? node : nodeDetailForTenant(node);
    },
    // The connection and its cause come from two queries.
    { oneMoment: true },
  );

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

type FleetQuery = FleetFilter & Pick<ListQuery, "name" | "status" | "order">;

/** The fleet contains no retired nodes, so filters on reported values match none of them. */
function sourceOf({ state, ...query }: ListQuery): { columns: ColumnFilter } | { fleet: FleetQuery } {
  const { name, status, search, order, ...reported } = query;
  const retired = state === "retired" || status === "retired";
  const inColumns = state === undefined || state === "present" || state === "retired";
  const byColumns = order === "newest" && search === undefined;
  if (inColumns && !isFiltered(reported) && (byColumns || retired))
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
