// Claims an enrollment token with one UPDATE, or refuses it with the reason. A pairing token works once. A bootstrap
// token works repeatedly for its node; one that was created before the node is bound to it by its first use, together
// with all others of that name.

import type { EnrollmentTokenKind } from "@holdfast/contracts/endpoints/enrollment";
import { ApiError, type ErrorCode } from "@holdfast/contracts/errors";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Tx } from "../../database/connect.ts";
import { isBacked } from "../../tokens/standing.ts";
import { nodeNameFrom } from "../directory/name.ts";
import { positionOf, type StatusRow } from "../directory/state.ts";
import { type CertificateRow, certificateOfKey, endedKey } from "../identity/certificates.ts";

export type UsedToken = {
  id: string;
  org_id: string;
  kind: EnrollmentTokenKind;
  /** As requested with the token. */
  node_name: string | null;
  enrolled_node_id: string;
  /** The node does not exist yet and has to be created. */
  makes_node: boolean;
};

export type Enrolled = { nodeId: string; orgId: string; name: string; certificate: CertificateRow };

/** The requester: its token, its key, and the node that the machine claims to be. */
export type Use = { secretHash: Buffer; keySha256: Buffer; nodeId: string | undefined };

/** A token as it was before the transaction. Its kind never changes, and a node that it has stays its node. */
export type KnownToken = { id: string; org_id: string; kind: EnrollmentTokenKind; node_id: string | null };

/** With the last heartbeat of its present identity. */
export type HeldNode = StatusRow & { heartbeat_at: Date | null };

/**
 * Locks the token's node, if it has one, before the token: a revocation does so in the same order, which avoids a
 * deadlock. Tokens of one name that have no node yet are serialized: the first creates the node, the others find it.
 */
export async function holdNodeOf(tx: Tx, known: KnownToken, { secretHash }: Use): Promise<HeldNode | undefined> {
  if (known.node_id === null) {
    if (known.kind === "pairing") return undefined;
    await tx`
      SELECT pg_advisory_xact_lock(hashtextextended('node ' || org_id || ' ' || node_name, 0))
      FROM enrollment_tokens WHERE secret_hash = ${secretHash} AND kind = 'bootstrap' AND node_id IS NULL`;
  }
  const [node] = await tx<HeldNode[]>`
    SELECT id, org_id, name, status, status_reason, revoked_at,
           (SELECT heartbeat_at FROM node_presence WHERE node_id = n.id) AS heartbeat_at
    FROM nodes n WHERE id = (SELECT node_id FROM enrollment_tokens WHERE secret_hash = ${secretHash})
    FOR UPDATE`;
  return node;
}

/** After `holdNodeOf`. Undefined: nothing was claimed. */
export async function takeToken(tx: Tx, { secretHash, keySha256, nodeId }: Use): Promise<UsedToken | undefined> {
  const newId = uuidv7();
  const [token] = await tx<UsedToken[]>`
    UPDATE enrollment_tokens t SET used_at = now(), uses = uses + 1, used_key_sha256 = ${keySha256},
      enrolled_node_id = coalesce(node_id, ${newId}),
      node_id = CASE kind WHEN 'bootstrap' THEN coalesce(node_id, ${newId}) ELSE node_id END
    WHERE secret_hash = ${secretHash} AND revoked_at IS NULL AND expires_at > now()
      AND (used_at IS NULL OR (kind = 'bootstrap' AND used_key_sha256 <> ${keySha256}))
      AND node_id IS NOT DISTINCT FROM coalesce(${nodeId ?? null}, node_id) AND ${isBacked(tx, "enrollment_token")}
    RETURNING id, org_id, kind, node_name, enrolled_node_id, enrolled_node_id = ${newId} AS makes_node`;
  return token;
}

/** Binds the other tokens of this name that have no node yet. */
export async function bindNamesakes(tx: Tx, token: UsedToken): Promise<void> {
  await tx`
    UPDATE enrollment_tokens SET node_id = ${token.enrolled_node_id}
    WHERE org_id = ${token.org_id} AND kind = 'bootstrap' AND node_id IS NULL AND node_name = ${token.node_name}`;
}

/**
 * A bootstrap token stays on a host for months, so it may do less than a pairing token that was just created: it never
 * undoes a revocation, and is refused for a machine that claims to be another node.
 */
export function checkBootstrap(
  token: UsedToken,
  requested: string | undefined,
  node: StatusRow | undefined,
): void {
  if (token.kind !== "bootstrap") return;
  const position = node && positionOf(node);
  if (position === "retired") throw new ApiError("node_retired");
  if (position === "revoked") throw new ApiError("identity_revoked");
  const names = [token.node_name, node?.name, node?.id];
  if (requested === undefined || names.includes(nodeNameFrom(requested))) return;
  const name = node?.name ?? token.node_name;
  throw new ApiError("enrollment_token_wrong_node", {
    message: `This machine's name is ${nodeNameFrom(requested)}, but this bootstrap token is for ${name}.`,
    nextStep: "Correct HOLDFAST_NODE_NAME on the machine, or give it the token that was made for it.",
    details: { node_name: name },
  });
}

type TokenState = {
  org_id: string;
  kind: EnrollmentTokenKind;
  node_id: string | null;
  node_name: string | null;
  revoked: boolean;
  /** Its creator may still enroll nodes. */
  backed: boolean;
  used: boolean;
  expired: boolean;
  used_key_sha256: Buffer | null;
  enrolled_node_id: string | null;
};

/** Returns the earlier response to the machine that used the token; throws the reason for any other. */
export async function sameAgain(tx: Tx, { secretHash, keySha256, nodeId }: Use): Promise<Enrolled> {
  const [token] = await tx<TokenState[]>`
    SELECT org_id, kind, node_id, node_name, revoked_at IS NOT NULL AS revoked, used_at IS NOT NULL AS used,
           used_key_sha256, expires_at <= now() AS expired, enrolled_node_id,
           ${isBacked(tx, "enrollment_token")} AS backed
    FROM enrollment_tokens t WHERE secret_hash = ${secretHash}`;
  if (!token) throw new ApiError("enrollment_token_unknown");
  if (token.revoked || !token.backed) throw await whyRevoked(tx, token);
  const sameKey = token.used_key_sha256?.equals(keySha256) ?? false;
  if (token.enrolled_node_id && sameKey) {
    const certificate = await certificateOfKey(tx, token.enrolled_node_id, keySha256);
    const [node] = await tx<{ name: string }[]>`SELECT name FROM nodes WHERE id = ${token.enrolled_node_id}`;
    if (certificate?.good && node) {
      return { nodeId: token.enrolled_node_id, orgId: token.org_id, name: node.name, certificate };
    }
  }
  if (token.node_id && nodeId !== undefined && nodeId !== token.node_id) {
    throw await wrongNode(
      tx,
      token,
      nodeId,
      "This enrollment token was made for another node than this machine is.",
    );
  }
  if (token.used && token.kind === "pairing") throw new ApiError("enrollment_token_used");
  if (token.expired) throw over("enrollment_token_expired", token);
  if (sameKey) throw endedKey();
  throw await wrongNode(
    tx,
    token,
    nodeId,
    "This machine is a node already, and this enrollment token makes a new one.",
  );
}

/** `nodeId`: the node that the machine claims to be, which may or may not get a token of its own. */
async function wrongNode(
  tx: Tx,
  token: TokenState,
  nodeId: string | undefined,
  message: string,
): Promise<ApiError> {
  const [node] = await tx<{ status: string }[]>`
    SELECT status FROM nodes WHERE id = ${nodeId ?? null} AND org_id = ${token.org_id}`;
  if (node?.status === "retired") return new ApiError("node_retired");
  const asNew =
    "run `holdfast agent join --force` with a token of `holdfast node token create` to become a new node";
  return new ApiError("enrollment_token_wrong_node", {
    message,
    nextStep: node
      ? `Make a token for this machine's node: \`holdfast node token create --node ${nodeId}\`; or ${asNew}.`
      : `This server does not know the node that this machine was: ${asNew}.`,
    details: { node_id: token.node_id ?? nodeId },
  });
}

/** Tokens are revoked with their node; then the node's state is the more useful reason. */
async function whyRevoked(tx: Tx, token: TokenState): Promise<ApiError> {
  const [node] = await tx<Pick<StatusRow, "status" | "revoked_at">[]>`
    SELECT status, revoked_at FROM nodes WHERE id = ${token.node_id}`;
  if (node?.status === "retired") return new ApiError("node_retired");
  return node?.revoked_at ? new ApiError("identity_revoked") : over("enrollment_token_revoked", token);
}

function over(code: ErrorCode, { kind, node_name }: TokenState): ApiError {
  if (kind === "pairing") return new ApiError(code);
  return new ApiError(code, {
    nextStep:
      `Make a new one, \`holdfast node token create --bootstrap --node ${node_name}\`, put it into the host's ` +
      "HOLDFAST_BOOTSTRAP_TOKEN and restart its agent.",
  });
}
