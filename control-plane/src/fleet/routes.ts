// The fleet over HTTP.

import { getFleet, getFleetPicture } from "@holdfast/contracts/endpoints/fleet";
import { packNodes } from "@holdfast/contracts/public/fleet-picture";
import type { ApiContext } from "../api/context.ts";
import { type OrgCall, orgRoute, type WaitCall } from "../api/route.ts";
import { createBrakes } from "../drift/brake/current.ts";
import { presentBrake } from "../drift/brake/words.ts";
import { fleetForTenant, refuseSearchByReason, seesReasons } from "../drift/tenants/redact.ts";
import { isFiltered, matches } from "./filter.ts";
import type { FleetNode } from "./node.ts";
import { summarize } from "./summary.ts";

export function fleetRoutes(api: ApiContext): void {
  const brakes = createBrakes(api.system);
  const waitFirst = async (call: WaitCall<typeof getFleet | typeof getFleetPicture>) => {
    refuseSearchByReason(seesReasons(call), call.query);
    await api.fleets.current(call.org.id);
  };

  const summary = async (call: OrgCall<typeof getFleet>) => {
    const { nodes, at, incidents } = api.fleets.known(call.org.id);
    const summary = summarize(nodes, call.query, { at, incidents, nodeApiUrl: api.nodes.apiUrl() });
    const fleet = { ...summary, brake: presentBrake(brakes.known()) };
    return seesReasons(call) ? fleet : fleetForTenant(fleet);
  };
  orgRoute(api, getFleet, summary, {
    waitFirst: async (call) => void (await Promise.all([waitFirst(call), brakes.current()])),
  });

  const picture = async (call: OrgCall<typeof getFleetPicture>) => {
    const { since, ...filter } = call.query;
    const view = api.fleets.known(call.org.id);
    const pack = (nodes: readonly FleetNode[]) =>
      packNodes(seesReasons(call) ? nodes : nodes.map((node) => ({ ...node, reason: null })), at);
    const at = view.at.getTime();
    const head = { version: view.version, at: view.at.toISOString() };
    if (isFiltered(filter)) {
      const matching = view.nodes.filter((node) => matches(node, filter));
      return { ...head, whole: true, gone: [], ...pack(matching) };
    }
    const changes = since === undefined ? undefined : view.since(since);
    if (!changes) return { ...head, whole: true, gone: [], ...pack(view.nodes) };
    return { ...head, whole: false, gone: [...changes.gone], ...pack(changes.changed) };
  };
  orgRoute(api, getFleetPicture, picture, { waitFirst });
}
