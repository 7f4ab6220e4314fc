// Log lines over HTTP: for people, and from the gateways that were asked for them.

import { findLogs } from "@holdfast/contracts/endpoints/logs";
import { reportLogLines } from "@holdfast/contracts/internal/logs";
import type { ApiContext } from "../api/context.ts";
import { orgRoute } from "../api/route.ts";
import { withOrg } from "../database/connect.ts";
import { type InternalApi, internalRoute } from "../internal-api/route.ts";
import { type Actor, isOperator } from "../people/actor.ts";
import { storeAnswer } from "./answer.ts";
import { type Asked, askForLogs, type Gathered } from "./ask.ts";
import { presentLine } from "./lines.ts";
import { linesOf } from "./owned.ts";

export function logRoutes(api: ApiContext): void {
  orgRoute<typeof findLogs, Gathered>(
    api,
    findLogs,
    async ({ waited }) => ({
      items: waited.lines.map(presentLine),
      truncated: waited.truncated,
      replicas: waited.replicas,
    }),
    {
      waitFirst: ({ actor, org, query: { id, since = null, until = null, process, limit } }) =>
        visibleLogs(api, { actor, orgId: org.id }, { ids: [id], since, until, process, limit }),
    },
  );
}

/** What the caller may see of what was found. No transaction is open while processes are asked. */
export async function visibleLogs(
  api: ApiContext,
  { actor, orgId }: { actor: Actor; orgId: string },
  asked: Asked,
): Promise<Gathered> {
  const found = await askForLogs(api, asked);
  if (isOperator(actor)) return found;
  const lines = await withOrg(api.app, orgId, (tx) => linesOf(tx, orgId, found.lines));
  return {
    lines,
    // How many lines others have under the id is not for the caller.
    truncated: found.truncated && lines.length > 0,
    // Where processes run, and with what, is for operators of the platform.
    replicas: found.replicas.map((one) => ({ ...one, host: null })),
    settings: [],
  };
}

export function logInternalRoutes(internalApi: InternalApi, { system, signals }: ApiContext): void {
  internalRoute(internalApi, reportLogLines, async ({ params: { request_id: id }, body }) => {
    await storeAnswer(system, id, body.instance_id, body.answer);
    signals.publish("log_answer", [id]);
    return undefined;
  });
}
