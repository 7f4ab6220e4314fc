// Enrollment over HTTP: tokens for operators, and for machines the two endpoints that need no
// certificate yet, which both listeners serve.

import { getAgentRelease } from "@holdfast/contracts/endpoints/agent-release";
import {
  createEnrollmentToken,
  enrollNode,
  getTrustBundle,
  listEnrollmentTokens,
  revokeEnrollmentToken,
} from "@holdfast/contracts/endpoints/enrollment";
import { ApiError } from "@holdfast/contracts/errors";
import { installCommand } from "../../agent-release/install-command.ts";
import type { ApiContext } from "../../api/context.ts";
import { pageStart, toPage } from "../../api/page.ts";
import { type OrgCall, orgRoute, publicRoute } from "../../api/route.ts";
import {
  holdNode,
  markTokenRevoked,
  selectEnrollmentToken,
  selectEnrollmentTokens,
} from "../directory/queries.ts";
import { toIssued } from "../identity/certificates.ts";
import { trustAtEnrollment } from "../identity/trust.ts";
import { enroll } from "./enroll.ts";
import { issueToken, requireAuthority, toEnrollmentToken } from "./issue-token.ts";

export function enrollmentTokenRoutes(api: ApiContext): void {
  orgRoute(api, createEnrollmentToken, async (call) => {
    const { kind, expires_in_minutes } = call.body;
    const binding = await bindingOf(call);
    const created = await issueToken(api, call, { kind, ...binding, expiresInMinutes: expires_in_minutes });
    const { id, node_id, node_name, expires_at } = created;
    call.touched({ type: "enrollment_token", id, name: node_name }, { kind, node_id, expires_at });
    return created;
  });

  orgRoute(api, getAgentRelease, async () => {
    const release = api.agentReleases.current();
    if (!release) {
      throw new ApiError("not_found", {
        message: "This server has no packed agent to download.",
        nextStep: "Pack it where the server runs: `npm run pack-agent`.",
      });
    }
    const apiUrl = api.nodes.apiUrl();
    return {
      version: release.version,
      archives: release.archives.map(({ arch, file, sha256, bytes }) => {
        return { arch, url: `${apiUrl}/agent/${file}`, sha256, bytes };
      }),
      upgrade_command: installCommand(release, { apiUrl }),
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
    touched(
      { type: "enrollment_token", id: row.id, name: row.node_name },
      { kind: row.kind, node_id: row.node_id },
    );
    return undefined;
  });
}

/** For `http` of either listener. */
export function enrollmentRoutes(api: ApiContext): void {
  publicRoute(api, getTrustBundle, async () => ({ roots: [...requireAuthority(api).trustBundle] }));

  publicRoute(api, enrollNode, async ({ body, address, correlationId }) => {
    const authority = requireAuthority(api);
    const { system, log, nodes } = api;
    const deps = {
      system,
      log,
      authority,
      gate: nodes.gate,
      directory: nodes.directory,
      allowUnknownHosts: nodes.allowUnknownHosts,
    };
    const enrolled = await enroll(deps, body, { address, correlationId });
    return {
      ...toIssued(enrolled.certificate),
      node_id: enrolled.nodeId,
      org_id: enrolled.orgId,
      node_name: enrolled.name,
      trust: await trustAtEnrollment(nodes, authority, {
        id: enrolled.nodeId,
        keySha256: enrolled.keySha256,
      }),
      trust_bundle: [...authority.trustBundle],
      verifiers: nodes.keys.verifiers(),
      profile: await nodes.profile(),
    };
  });
}

type Binding = { nodeId: string | null; nodeName: string | null };

/** The only node that may use the token, if it exists; otherwise the name of the new node. */
async function bindingOf({ tx, body }: OrgCall<typeof createEnrollmentToken>): Promise<Binding> {
  const { kind, node_id, node_name = null } = body;
  if (node_id !== undefined) {
    const node = await holdNode(tx, { id: node_id });
    if (!node) throw new ApiError("not_found", { message: "Node not found, or you have no access to it." });
    return kind === "pairing" ? pairingFor(node) : bootstrapFor(node);
  }
  const node = kind === "bootstrap" && node_name !== null ? await holdNode(tx, { name: node_name }) : undefined;
  return node ? bootstrapFor(node) : { nodeId: null, nodeName: node_name };
}

type HeldNode = NonNullable<Awaited<ReturnType<typeof holdNode>>>;

function pairingFor({ id, status }: HeldNode): Binding {
  if (status === "retired") throw new ApiError("node_retired");
  return { nodeId: id, nodeName: null };
}

function bootstrapFor({ id, name, status, revoked_at }: HeldNode): Binding {
  if (status === "retired") throw new ApiError("node_retired");
  if (revoked_at) {
    throw new ApiError("node_change_refused", {
      message: `${name} is revoked, and a bootstrap token does not undo that.`,
      nextStep: `Take it in again first, with \`holdfast node token create --node ${name}\`; then make this one.`,
      details: { status, revoked: true },
    });
  }
  return { nodeId: id, nodeName: name };
}
