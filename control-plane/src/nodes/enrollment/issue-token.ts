// A new enrollment token, with how to use it.

import {
  type EnrollmentToken,
  type EnrollmentTokenKind,
  type NewEnrollmentToken,
  tokenMinutes,
} from "@holdfast/contracts/endpoints/enrollment";
import { ApiError } from "@holdfast/contracts/errors";
import { installCommand } from "../../agent-release/install-command.ts";
import type { ApiContext } from "../../api/context.ts";
import type { OrgCall } from "../../api/route.ts";
import type { Authority } from "../../identity/authority.ts";
import { makeSecret } from "../../mechanisms/secrets.ts";
import { onlyThisMachine } from "../../node-api/names.ts";
import { nameOf } from "../../people/actor.ts";
import { makerOf } from "../../tokens/queries.ts";
import { insertEnrollmentToken, type TokenRow } from "../directory/queries.ts";

export async function issueToken(
  api: ApiContext,
  { tx, org, actor }: Pick<OrgCall<unknown>, "tx" | "org" | "actor">,
  wanted: {
    kind: EnrollmentTokenKind;
    nodeId: string | null;
    nodeName: string | null;
    expiresInMinutes?: number | undefined;
  },
): Promise<NewEnrollmentToken> {
  const { rootDigest } = requireAuthority(api);
  const { kind, nodeId, nodeName } = wanted;
  const { secret, hash } = makeSecret(kind === "pairing" ? "enrollment" : kind);
  const row = await insertEnrollmentToken(tx, {
    ...{ orgId: org.id, kind, hash, nodeId, nodeName },
    ...(await makerOf(tx, actor)),
    creatorName: nameOf(actor),
    expiresInMinutes: wanted.expiresInMinutes ?? tokenMinutes[kind].usual,
  });
  const token = `${secret}.${rootDigest}`;
  const apiUrl = api.nodes.apiUrl();
  const release = api.agentReleases.current();
  return {
    ...toEnrollmentToken(row),
    token,
    api_url: apiUrl,
    join_command: `holdfast agent join --token ${token} --api ${apiUrl}`,
    install_command: release ? installCommand(release, { token, apiUrl, rejoin: row.node_id !== null }) : null,
    only_this_machine: onlyThisMachine(apiUrl),
  };
}

export function requireAuthority(api: ApiContext): Authority {
  if (!api.nodes.authority) throw new ApiError("ca_unavailable");
  return api.nodes.authority;
}

export function toEnrollmentToken(row: TokenRow): EnrollmentToken {
  return {
    id: row.id,
    kind: row.kind,
    node_id: row.node_id,
    node_name: row.node_name,
    created_by: row.creator_name,
    created_at: row.created_at.toISOString(),
    expires_at: row.expires_at.toISOString(),
    used_at: row.used_at?.toISOString() ?? null,
    uses: row.uses,
    revoked_at: row.revoked_at?.toISOString() ?? null,
    enrolled_node_id: row.enrolled_node_id,
  };
}
