// The story behind an id over HTTP, for operators of nodes.

import { getTrace } from "@holdfast/contracts/endpoints/trace";
import { ApiError } from "@holdfast/contracts/errors";
import { callerOf } from "../../allocations/access.ts";
import type { ApiContext } from "../../api/context.ts";
import { orgRoute } from "../../api/route.ts";
import { holdsScope } from "../../people/actor.ts";
import { readStory } from "./read.ts";
import { resolve } from "./resolve.ts";

export function traceRoutes(api: ApiContext): void {
  orgRoute(api, getTrace, async (call) => {
    const { tx, actor, org, params } = call;
    const { trace_id: id } = params;
    const holds = (scope: "audit:read" | "tasks:read") => holdsScope(actor, org.role, scope);
    const sees = { caller: callerOf(call), audit: holds("audit:read"), tasks: holds("tasks:read") };
    const resolved = await resolve(tx, id, sees);
    if (resolved.foundAs.length === 0) throw new ApiError("not_found");
    return {
      ...{ id, found_as: resolved.foundAs, ...(await readStory(tx, resolved, sees)) },
      withheld: (["audit:read", "tasks:read"] as const).filter((scope) => !holds(scope)),
    };
  });
}
