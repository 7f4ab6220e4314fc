// The paths of the public listener that agents connect to. Their token is checked with the api before the upgrade: agents
// reset their backoff when a socket opens.

import type { IncomingMessage } from "node:http";
import { ApiError } from "@holdfast/contracts/errors";
import { EXECUTION_PATHS } from "@holdfast/contracts/execution/frames";
import { admitAgent } from "@holdfast/contracts/internal/executions";
import type { ApiLink } from "../api-link/link.ts";
import type { AdmittedRoute } from "../listeners/public-listener.ts";
import type { Agents } from "./agents/agents.ts";
import { sharing } from "./agents/shared.ts";
import { inCapitals } from "./capitals.ts";
import { limited } from "./limited.ts";

/**
 * After a restart a whole fleet connects at once. With more than the link keeps connections for, 5,000 agents took twice as
 * long and cost 18 KB of memory each instead of 7.
 */
const MOST_AT_ONCE = 6;
/** `<organization>.<secret>`. What has another form is not worth a request. */
const tokenForm = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\.[\x21-\x7e]{8,250}$/i;

export function executionRoutes(options: {
  api: Pick<ApiLink, "ask" | "instanceId">;
  agents: Pick<Agents, "server" | "accept">;
}): AdmittedRoute[] {
  const { api, agents } = options;
  const inTurn = limited(MOST_AT_ONCE);
  const shared = sharing<string>();

  const admit: AdmittedRoute["admit"] = async (request, correlationId) => {
    const token = tokenOf(request);
    const admitted = await inTurn(async () => {
      if (request.socket.destroyed) throw new ApiError("shutting_down");
      return api.ask(admitAgent, { body: { token, gateway_id: api.instanceId }, correlationId });
    }).catch((error: unknown) => {
      throw error instanceof ApiError && error.status < 500 ? inCapitals(error) : apiUnreachable();
    });
    const { agent_id: agentId, name } = admitted;
    const orgId = shared(admitted.org_id);
    return (socket, connection) => agents.accept({ socket, connection }, { agentId, orgId, name, correlationId });
  };
  return EXECUTION_PATHS.map((path) => ({ path, server: agents.server, admit }));
}

function tokenOf({ headers }: IncomingMessage): string {
  const [, token] = /^Bearer +(\S+)$/i.exec(headers.authorization ?? "") ?? [];
  if (token === undefined) {
    throw inCapitals(
      new ApiError("agent_token_refused", {
        message: "The request has no agent token: `Authorization: Bearer <token>`.",
      }),
    );
  }
  if (!tokenForm.test(token)) throw inCapitals(new ApiError("agent_token_refused"));
  return token;
}

/** Agents keep their backoff, and nothing is decided about the token. */
function apiUnreachable(): ApiError {
  return inCapitals(
    new ApiError("shutting_down", {
      message: "The gateway cannot reach the API, which decides who may connect.",
      headers: { "retry-after": "1" },
    }),
  );
}
