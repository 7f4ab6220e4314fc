// The use of an enrollment token: taken by one UPDATE, or refused with what is wrong with it. A pairing
// token works once. A bootstrap token works again and again for its node; one that was made before the
// node is bound to it by its first use, together with all others of that name.

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
  /** As it was asked for with the token. */
  node_name: string | null;
  enrolled_node_id: string;
  /** There is no such node yet: it is to be made. */
  makes_node: boolean;
};

export type Enrolled = { nodeId: string; orgId: string; name: string; certificate: CertificateRow };

/** Who asks: by which token, with which key, and what the machine takes itself for. */
export type Use = { secretHash: Buffer; keySha256: Buffer; nodeId: string | undefined };

/**
 * Undefined: nothing was taken. Tokens of one name that have no node yet come one after the other: one makes
 * the node, the others find it. Then the node is locked, before the token, as whoever revokes it does: in
 * another order two would wait for each other.
 */
export async function takeToken(tx: Tx, { secretHash, keySha256, nodeId }: Use): Promise<UsedToken | undefined> {
  await tx`
    SELECT pg_advisory_xact_lock(hashtextextended('node ' || org_id || ' ' || node_name, 0))
    FROM enrollment_tokens WHERE secret_hash = ${secretHash} AND kind = 'bootstrap' AND node_id IS NULL`;
  await tx`
    SELECT FROM nodes WHERE id = (SELECT node_id FROM enrollment_tokens WHERE secret_hash = ${secretHash})
    FOR UPDATE`;
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

/** Of one name, the others that wait for a node: now they have it. */
export async function bindNamesakes(tx: Tx, token: UsedToken): Promise<void> {
  await tx`
    UPDATE enrollment_tokens SET node_id = ${token.enrolled_node_id}
    WHERE org_id = ${token.org_id} AND kind = 'bootstrap' AND node_id IS NULL AND node_name = ${token.node_name}`;
}

/**
 * A bootstrap token lies on a host for months, so it does less than a pairing token that somebody made
 * just now: it never ends a revocation, and serves no machine that takes itself for another node.
 */
export function checkBootstrap(token: UsedToken, asked: string | undefined, node: StatusRow | undefined): void {
  if (token.kind !== "bootstrap") return;
  const position = node && positionOf(node);
  if (position === "retired") throw new ApiError("node_retired");
  if (position === "revoked") throw new ApiError("identity_revoked");
  const names = [token.node_name, node?.name, node?.id];
  if (asked === undefined || names.includes(nodeNameFrom(asked))) return;
  const name = node?.name ?? token.node_name;
  throw new ApiError("enrollment_token_wrong_node", {
    message: `This machine calls itself ${nodeNameFrom(asked)}, and this bootstrap token is for ${name}.`,
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
  /** Its maker may still enroll nodes. */
  backed: boolean;
  used: boolean;
  expired: boolean;
  used_key_sha256: Buffer | null;
  enrolled_node_id: string | null;
};

/** The earlier answer for the machine that used the token; for any other, what is wrong with it. */
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

/** `nodeId` is what the machine takes itself for: a node that can have a token of its own, or not. */
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

/** A node that is revoked or retired has taken its tokens with it, and is the better reason. */
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
