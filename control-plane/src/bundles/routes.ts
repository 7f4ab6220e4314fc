// Recovery bundles over HTTP, for operators. Nodes use them with POST /v1/recover (recovery/routes.ts).

import {
  type BundleSummary,
  createBundle,
  listBundles,
  listNodesWithoutToken,
  revokeBundle,
} from "@holdfast/contracts/endpoints/bundles";
import { ApiError } from "@holdfast/contracts/errors";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { ApiContext } from "../api/context.ts";
import { pageStart, toPage } from "../api/page.ts";
import { orgRoute } from "../api/route.ts";
import type { Tx } from "../database/connect.ts";
import type { Authority } from "../identity/authority.ts";
import { makeSecret } from "../mechanisms/secrets.ts";
import { positionOf, type StatusRow } from "../nodes/directory/state.ts";
import { makerOf } from "../tokens/queries.ts";
import { lineOf, signedBundle } from "./content.ts";
import {
  type BundleRow,
  insertBundle,
  markBundleRevoked,
  selectBundle,
  selectBundles,
  selectKnownState,
  selectWithoutToken,
} from "./queries.ts";

export function bundleRoutes(api: ApiContext): void {
  orgRoute(api, createBundle, async ({ tx, org, actor, params, body, correlationId, touched }) => {
    const authority = requireIssuing(api);
    const node = await holdNode(tx, params.node_id);
    refuseDecided(node);
    const { secret, hash } = makeSecret("bundle");
    const row = await insertBundle(tx, {
      ...{ id: uuidv7(), orgId: org.id, nodeId: node.id, hash, correlationId },
      ...(await makerOf(tx, actor)),
      expiresInMinutes: body.expires_in_minutes,
    });
    const { id, seq, expires_at } = row;
    touched({ type: "node", id: node.id, name: node.name }, { bundle_id: id, seq, expires_at });
    const bundle = signedBundle(api.nodes, authority, {
      ...{ row, orgId: org.id, secret },
      known: await selectKnownState(tx, node.id),
      profile: await api.nodes.profile(),
      release: api.agentReleases.current(),
    });
    const [root_sha256 = ""] = authority.rootSha256;
    return { ...toSummary(row), root_sha256, bundle, line: lineOf(bundle, authority) };
  });

  orgRoute(api, listBundles, async ({ tx, query: { limit, cursor } }) => {
    const rows = await selectBundles(tx, { before: pageStart(listBundles, cursor), limit });
    return toPage(listBundles, rows, { limit, idOf: (row) => row.id, toItem: toSummary });
  });

  orgRoute(api, revokeBundle, async ({ tx, params, touched }) => {
    const row = await selectBundle(tx, params.bundle_id);
    if (!row) throw new ApiError("not_found");
    await markBundleRevoked(tx, row.id);
    const { node_id, node_name, correlation_id } = row;
    touched(
      { type: "node", id: node_id, name: node_name, correlationId: correlation_id },
      { bundle_id: row.id, was: row.state },
    );
    return undefined;
  });

  orgRoute(api, listNodesWithoutToken, async ({ tx, query: { limit, cursor } }) => {
    const rows = await selectWithoutToken(tx, { before: pageStart(listNodesWithoutToken, cursor), limit });
    return toPage(listNodesWithoutToken, rows, {
      ...{ limit, idOf: ({ id }) => id },
      toItem: ({ id, name, heartbeat_at }) => ({
        ...{ node_id: id, node_name: name, last_heartbeat_at: heartbeat_at?.toISOString() ?? null },
      }),
    });
  });
}

/** The one place that decides whether bundles are created at all. */
function requireIssuing({ nodes }: ApiContext): Authority {
  if (!nodes.authority) throw new ApiError("ca_unavailable");
  nodes.gate.check();
  return nodes.authority;
}

async function holdNode(tx: Tx, id: string): Promise<StatusRow> {
  const [node] = await tx<StatusRow[]>`
    SELECT id, org_id, name, status, status_reason, revoked_at FROM nodes WHERE id = ${id} FOR UPDATE`;
  if (!node) throw new ApiError("not_found", { message: "Node not found, or you have no access to it." });
  return node;
}

/** What operators decided about the node is changed by their own commands first: a bundle for it could not be used. */
function refuseDecided(node: StatusRow): void {
  const position = positionOf(node);
  const { name } = node;
  if (position === "retired") throw new ApiError("node_retired");
  if (position === "revoked") {
    throw new ApiError("node_change_refused", {
      message: `${name} is revoked, and a recovery bundle does not undo that.`,
      nextStep: `To accept it again: create a token with \`holdfast node token create --node ${name}\`, and run \`holdfast agent join\` with it on the machine.`,
      details: { status: node.status, revoked: true },
    });
  }
  if (position === "quarantined") {
    throw new ApiError("node_change_refused", {
      message: `${name} is quarantined, and a recovery bundle does not undo that.`,
      nextStep: `Find out why it was quarantined. Then end it: \`holdfast node reactivate ${name}\`.`,
      details: { status: node.status, revoked: false },
    });
  }
}

function toSummary(row: BundleRow): BundleSummary {
  const { id, node_id, node_name, seq, state, correlation_id } = row;
  return {
    ...{ id, node_id, node_name, seq, state, correlation_id },
    created_by: row.creator_name,
    created_at: row.created_at.toISOString(),
    expires_at: row.expires_at.toISOString(),
    used_at: row.used_at?.toISOString() ?? null,
    applied_at: row.applied_at?.toISOString() ?? null,
    revoked_at: row.revoked_at?.toISOString() ?? null,
  };
}
