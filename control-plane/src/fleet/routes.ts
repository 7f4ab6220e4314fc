// The fleet over HTTP.

import { getFleet, getFleetPicture } from "@holdfast/contracts/endpoints/fleet";
import { packNodes } from "@holdfast/contracts/public/fleet-picture";
import type { ActingOrg } from "../api/access.ts";
import type { ApiContext } from "../api/context.ts";
import { type OrgCall, orgRoute } from "../api/route.ts";
import { isFiltered, matches } from "./filter.ts";
import { summarize } from "./summary.ts";

export function fleetRoutes(api: ApiContext): void {
  const waitFirst = async ({ org }: { org: ActingOrg }) => void (await api.fleets.current(org.id));

  const summary = async ({ org, query }: OrgCall<typeof getFleet>) => {
    const { nodes, at } = api.fleets.known(org.id);
    return summarize(nodes, query, { at, nodeApiUrl: api.nodes.apiUrl() });
  };
  orgRoute(api, getFleet, summary, { waitFirst });

  const picture = async ({ org, query }: OrgCall<typeof getFleetPicture>) => {
    const { since, ...filter } = query;
    const view = api.fleets.known(org.id);
    const at = view.at.getTime();
    const head = { version: view.version, at: view.at.toISOString() };
    if (isFiltered(filter)) {
      const matching = view.nodes.filter((node) => matches(node, filter));
      return { ...head, whole: true, gone: [], ...packNodes(matching, at) };
    }
    const changes = since === undefined ? undefined : view.since(since);
    if (!changes) return { ...head, whole: true, gone: [], ...packNodes(view.nodes, at) };
    return { ...head, whole: false, gone: [...changes.gone], ...packNodes(changes.changed, at) };
  };
  orgRoute(api, getFleetPicture, picture, { waitFirst });
}
