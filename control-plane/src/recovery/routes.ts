// Recovery over HTTP: for nodes without an accepted certificate, and for the operator who revokes their tokens.

import { getServerTime, recoverNode, revokeRecoveryTokens } from "@holdfast/contracts/endpoints/recovery";
import { ApiError } from "@holdfast/contracts/errors";
import type { ApiContext } from "../api/context.ts";
import { orgRoute, publicRoute } from "../api/route.ts";
import { recoverByBundle } from "../bundles/use.ts";
import type { Authority } from "../identity/authority.ts";
import { isSecretOf } from "../mechanisms/secrets.ts";
import { selectNode } from "../nodes/directory/queries.ts";
import { toIssued } from "../nodes/identity/certificates.ts";
import { trustAtEnrollment } from "../nodes/identity/trust.ts";
import { createPace, type Pace } from "./pace.ts";
import { recover } from "./recover.ts";
import { onRefused } from "./refusals.ts";
import { revokeRecoveryTokensOf } from "./tokens.ts";

export function recoveryTokenRoutes(api: ApiContext): void {
  orgRoute(api, revokeRecoveryTokens, async ({ tx, params, touched, afterCommit }) => {
    const node = await selectNode(tx, params.node_id);
    if (!node) throw new ApiError("not_found");
    const revoked = await revokeRecoveryTokensOf(tx, node.id);
    touched({ type: "node", id: node.id, name: node.name }, { revoked });
    // The replica that the node is connected to gives it another one.
    afterCommit(() => api.signals.publish("node_standing", [node.id]));
    return { revoked };
  });
}

/** Both listeners of a process keep one pace. */
const paces = new WeakMap<ApiContext["nodes"], Pace>();

function paceOf({ nodes, recovery }: ApiContext): Pace {
  const known = paces.get(nodes);
  if (known) return known;
  const pace = createPace(recovery.perSecond);
  paces.set(nodes, pace);
  return pace;
}

/** For `http` of either listener. */
export function recoveryRoutes(api: ApiContext): void {
  const pace = paceOf(api);

  publicRoute(api, getServerTime, async ({ query }) =>
    requireAuthority(api).signAsRoot({
      kind: "server_time" as const,
      version: 1,
      content: { time: new Date().toISOString(), nonce: query.nonce ?? "" },
    }),
  );

  publicRoute(api, recoverNode, async ({ body, address, correlationId }) => {
    const authority = requireAuthority(api);
    const { system, signals, failures, log, nodes, recovery: policy } = api;
    const { name: profile } = await nodes.profile();
    const { directory, gate, staleAfterSeconds } = nodes;
    const deps = { system, failures, log, authority, gate, directory, staleAfterSeconds, policy, pace, profile };
    try {
      const exchange = isSecretOf("bundle", body.token) ? recoverByBundle : recover;
      const recovered = await exchange(deps, body, correlationId);
      const { nodeId, orgId, name, keySha256, certificate, token } = recovered;
      const trust = await trustAtEnrollment(nodes, authority, { id: nodeId, keySha256 });
      return { ...toIssued(certificate), node_id: nodeId, org_id: orgId, node_name: name, trust, recovery: token };
    } catch (error) {
      if (error instanceof ApiError) {
        await onRefused({ system, signals, failures }, error, { request: body, address, correlationId });
      }
      throw error;
    }
  });
}

function requireAuthority({ nodes }: ApiContext): Authority {
  if (!nodes.authority) throw new ApiError("ca_unavailable");
  return nodes.authority;
}
