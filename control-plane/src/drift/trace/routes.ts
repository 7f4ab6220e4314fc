// The story behind an id over HTTP, for operators of nodes.

import { getTrace } from "@holdfast/contracts/endpoints/trace";
import { ApiError } from "@holdfast/contracts/errors";
import { callerOf } from "../../allocations/access.ts";
import type { ApiContext } from "../../api/context.ts";
import { orgRoute, type WaitCall } from "../../api/route.ts";
import { withOrg } from "../../database/connect.ts";
import type { Gathered } from "../../logs/ask.ts";
import { visibleLogs } from "../../logs/routes.ts";
import { holdsScope } from "../../people/actor.ts";
import { readStory } from "./read.ts";
import { type Resolved, resolve, type Viewer } from "./resolve.ts";

export function traceRoutes(api: ApiContext): void {
  orgRoute<typeof getTrace, Gathered>(
    api,
    getTrace,
    async (call) => {
      const { tx, params, waited } = call;
      const { trace_id: id } = params;
      const viewer = viewerOf(call);
      const resolved = await resolve(tx, id, viewer);
      const found_as = [...resolved.foundAs, ...(waited.lines.length > 0 ? (["log"] as const) : [])];
      if (found_as.length === 0) throw new ApiError("not_found");
      const story = await readStory(tx, resolved, viewer, waited);
      return { id, found_as, ...story, replicas: waited.replicas };
    },
    {
      waitFirst: async (call) => {
        const { actor, org, params } = call;
        const resolved = await withOrg(api.app, org.id, (tx) => resolve(tx, params.trace_id, viewerOf(call)));
        return visibleLogs(api, { actor, orgId: org.id }, logsOf(params.trace_id, resolved));
      },
    },
  );
}

/** As many as a story shows, and those of what it is about. */
function logsOf(id: string, { correlationIds, taskIds, incidentIds }: Resolved) {
  const ids = [...new Set([id, ...correlationIds, ...taskIds, ...incidentIds])].slice(0, MOST_IDS);
  return { ids, since: null, until: null, limit: 500 };
}

const MOST_IDS = 200;

export function viewerOf(call: Pick<WaitCall<unknown>, "actor" | "org">): Viewer {
  const { actor, org } = call;
  return { caller: callerOf(call), holds: (scope) => holdsScope(actor, org.role, scope) };
}
