// Enrollment over HTTP: tokens for operators, and for machines the two endpoints that need no
// certificate yet, which both listeners serve.

import {
  createEnrollmentToken,
  type EnrollmentToken,
  enrollNode,
  getTrustBundle,
  listEnrollmentTokens,
  revokeEnrollmentToken,
} from "@holdfast/contracts/endpoints/enrollment";
import { ApiError } from "@holdfast/contracts/errors";
import type { ApiContext } from "../api/context.ts";
import { pageStart, toPage } from "../api/page.ts";
import { type OrgCall, orgRoute, publicRoute } from "../api/route.ts";
import type { Authority } from "../identity/authority.ts";
import { onlyThisMachine } from "../node-api/names.ts";
import { nameOf } from "../people/actor.ts";
import { forgetAttempts, limits, networkOf, takeAttempt } from "../people/rate-limit.ts";
import { makeSecret } from "../people/secrets.ts";
import { personBehind } from "../tokens/queries.ts";
import { toIssued } from "./certificates.ts";
import { enroll } from "./enrollment.ts";
import {
  insertEnrollmentToken,
  markTokenRevoked,
  selectEnrollmentToken,
  selectEnrollmentTokens,
  selectNode,
  type TokenRow,
} from "./queries.ts";

export function enrollmentTokenRoutes(api: ApiContext): void {
  orgRoute(api, createEnrollmentToken, async (call) => {
    const { rootDigest } = requireAuthority(api);
    await checkBinding(call);
    const { body, org, tx } = call;
    const { secret, hash } = makeSecret("enrollment");
    const row = await insertEnrollmentToken(tx, {
      orgId: org.id,
      hash,
      nodeId: body.node_id ?? null,
      nodeName: body.node_name ?? null,
      createdBy: await personBehind(tx, call.actor),
      creatorName: nameOf(call.actor),
      expiresInMinutes: body.expires_in_minutes,
    });
    call.touched({ type: "enrollment_token", id: row.id, name: body.node_name ?? null }, { node_id: row.node_id });
    const token = `${secret}.${rootDigest}`;
    const apiUrl = api.nodes.apiUrl();
    return {
      ...toEnrollmentToken(row),
      token,
      api_url: apiUrl,
      join_command: `holdfast agent join --token ${token} --api ${apiUrl}`,
      only_this_machine: onlyThisMachine(apiUrl),
    };
  });

  orgRoute(api, listEnrollmentTokens, async ({ tx, query }) => {
    const { limit, cursor } = query;
    const rows = await selectEnrollmentTokens(tx, { before: pageStart(listEnrollmentTokens, cursor), limit });
    return toPage(listEnrollmentTokens, rows, { limit, idOf: (row) => row.id, toItem: toEnrollmentToken });
  });

  orgRoute(api, revokeEnrollmentToken, async ({ tx, params, touched }) => {
    const row = await selectEnrollmentToken(tx, params.token_id);
    if (!row) throw new ApiError("not_found");
    await markTokenRevoked(tx, row.id);
    touched({ type: "enrollment_token", id: row.id, name: row.node_name });
    return undefined;
  });
}

/** For `http` of either listener. */
export function enrollmentRoutes(api: ApiContext): void {
  publicRoute(api, getTrustBundle, async () => ({ roots: [...requireAuthority(api).trustBundle] }));

  publicRoute(api, enrollNode, async ({ body, address, correlationId }) => {
    const from = networkOf(address);
    await takeAttempt(api.system, limits.address, "enroll", from);
    const authority = requireAuthority(api);
    const { system, log, nodes } = api;
    const deps = { system, log, authority, directory: nodes.directory };
    const enrolled = await enroll(deps, body, correlationId);
    // A fleet behind one address joins as fast as it likes; only what fails counts.
    await forgetAttempts(api.system, "enroll", from);
    return {
      ...toIssued(enrolled.certificate),
      node_id: enrolled.nodeId,
      org_id: enrolled.orgId,
      node_name: enrolled.name,
      trust_bundle: [...authority.trustBundle],
      verifiers: nodes.keys.verifiers(),
      profile: await nodes.profile(),
    };
  });
}

function requireAuthority(api: ApiContext): Authority {
  if (!api.nodes.authority) throw new ApiError("ca_unavailable");
  return api.nodes.authority;
}

async function checkBinding({ tx, body }: OrgCall<typeof createEnrollmentToken>): Promise<void> {
  if (body.node_id === undefined) return;
  if (body.node_name !== undefined) {
    const problem = "a node keeps its name; leave it out with node_id";
    throw new ApiError("invalid_request", { details: { fields: [{ field: "body.node_name", problem }] } });
  }
  const node = await selectNode(tx, body.node_id);
  if (!node) throw new ApiError("not_found", { message: "There is no such node, or it is not yours to see." });
  if (node.status === "retired") throw new ApiError("node_retired");
}

function toEnrollmentToken(row: TokenRow): EnrollmentToken {
  return {
    id: row.id,
    node_id: row.node_id,
    created_by: row.creator_name,
    created_at: row.created_at.toISOString(),
    expires_at: row.expires_at.toISOString(),
    used_at: row.used_at?.toISOString() ?? null,
    revoked_at: row.revoked_at?.toISOString() ?? null,
    enrolled_node_id: row.enrolled_node_id,
  };
}
