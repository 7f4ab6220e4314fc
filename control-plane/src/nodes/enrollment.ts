// Exchanges an enrollment token for a node's identity, in one transaction: token, node, certificate
// and audit, all of it or nothing. The token is consumed by one UPDATE, so of two machines with the
// same token exactly one becomes a node; the same machine may ask again and gets the same answer.

import { ApiError } from "@holdfast/contracts/errors";
import type { HostFacts } from "@holdfast/contracts/node-protocol";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Log } from "@holdfast/service/log";
import { recordAudit } from "../audit/record.ts";
import type { Sql, Tx } from "../database/connect.ts";
import type { Authority } from "../identity/authority.ts";
import { type KeyRequest, readKeyRequest } from "../identity/requests.ts";
import { hashSecret } from "../people/secrets.ts";
import { type CertificateRow, certificateOfKey, certify } from "./certificates.ts";
import type { NodeDirectory } from "./directory.ts";
import { nodeNameFrom, numbered } from "./name.ts";
import { moveNode } from "./state.ts";

export type EnrollmentRequest = {
  token: string;
  csr: string;
  node_id?: string | undefined;
  node_name?: string | undefined;
  facts: HostFacts;
};

export type Enrolled = { nodeId: string; orgId: string; name: string; certificate: CertificateRow };

type Dependencies = { system: Sql; authority: Authority; directory: NodeDirectory; log: Log };
type Consumed = {
  id: string;
  org_id: string;
  node_id: string | null;
  node_name: string | null;
  enrolled_node_id: string;
};
type Joined = Enrolled & { changed?: () => void };

/** What is stored of a token is the hash of this part; the rest tells the agent whom to trust. */
function secretOf(token: string): string {
  return token.split(".", 1)[0] ?? "";
}

export async function enroll(
  deps: Dependencies,
  request: EnrollmentRequest,
  correlationId: string,
): Promise<Enrolled> {
  const secretHash = hashSecret(secretOf(request.token));
  try {
    const key = await readKeyRequest(request.csr);
    const { changed, ...enrolled } = await deps.system.begin(async (tx): Promise<Joined> => {
      const token = await consume(tx, secretHash, key, request.node_id);
      if (!token) return sameAgain(tx, secretHash, key, request.node_id);
      const joined = token.node_id
        ? await rejoin(deps, tx, token, key)
        : await join(deps, tx, token, key, request);
      await recordEnrolled(deps, tx, joined, { token, request, correlationId });
      return joined;
    });
    changed?.();
    return enrolled;
  } catch (error) {
    if (error instanceof ApiError) await recordRefused(deps, secretHash, request, { error, correlationId });
    throw error;
  }
}

async function consume(
  tx: Tx,
  secretHash: Buffer,
  key: KeyRequest,
  nodeId: string | undefined,
): Promise<Consumed | undefined> {
  const [token] = await tx<Consumed[]>`
    UPDATE enrollment_tokens SET used_at = now(), used_key_sha256 = ${key.keySha256},
      enrolled_node_id = coalesce(node_id, ${uuidv7()})
    WHERE secret_hash = ${secretHash} AND used_at IS NULL AND revoked_at IS NULL AND expires_at > now()
      AND node_id IS NOT DISTINCT FROM coalesce(${nodeId ?? null}, node_id)
    RETURNING id, org_id, node_id, node_name, enrolled_node_id`;
  return token;
}

type TokenState = {
  org_id: string;
  node_id: string | null;
  revoked: boolean;
  used: boolean;
  expired: boolean;
  used_key_sha256: Buffer | null;
  enrolled_node_id: string | null;
};

/** The earlier answer for the machine that used the token; for any other, what is wrong with it. */
async function sameAgain(
  tx: Tx,
  secretHash: Buffer,
  key: KeyRequest,
  nodeId: string | undefined,
): Promise<Enrolled> {
  const [token] = await tx<TokenState[]>`
    SELECT org_id, node_id, revoked_at IS NOT NULL AS revoked, used_at IS NOT NULL AS used, used_key_sha256,
           expires_at <= now() AS expired, enrolled_node_id
    FROM enrollment_tokens WHERE secret_hash = ${secretHash}`;
  if (!token || token.revoked) throw new ApiError("enrollment_token_unknown");
  if (token.enrolled_node_id && token.used_key_sha256?.equals(key.keySha256)) {
    const certificate = await certificateOfKey(tx, token.enrolled_node_id, key.keySha256);
    const [node] = await tx<{ name: string }[]>`SELECT name FROM nodes WHERE id = ${token.enrolled_node_id}`;
    if (certificate?.good && node) {
      return { nodeId: token.enrolled_node_id, orgId: token.org_id, name: node.name, certificate };
    }
  }
  if (token.node_id && nodeId !== undefined && nodeId !== token.node_id) {
    throw new ApiError("enrollment_token_wrong_node", { details: { node_id: token.node_id } });
  }
  if (token.used || token.expired) {
    throw new ApiError(token.used ? "enrollment_token_used" : "enrollment_token_expired");
  }
  throw new ApiError("enrollment_token_wrong_node", {
    message: "This machine is a node already, and this enrollment token makes a new one.",
    nextStep:
      "Make a token for its node: `holdfast node token create --node <id>`; or join with --force to become a new one.",
    details: { node_id: nodeId },
  });
}

async function join(
  deps: Dependencies,
  tx: Tx,
  token: Consumed,
  key: KeyRequest,
  request: EnrollmentRequest,
): Promise<Joined> {
  const asked = token.node_name ?? request.node_name ?? request.facts.hostname;
  const node = { id: token.enrolled_node_id, orgId: token.org_id };
  const name = await insertNode(tx, node, nodeNameFrom(asked));
  const certificate = await certify(tx, deps.authority, node, key, "enrollment");
  return { nodeId: node.id, orgId: node.orgId, name, certificate };
}

async function insertNode(tx: Tx, node: { id: string; orgId: string }, wanted: string): Promise<string> {
  for (let attempt = 1; ; attempt += 1) {
    const name = numbered(wanted, attempt);
    const inserted = await tx`
      INSERT INTO nodes (id, org_id, name) VALUES (${node.id}, ${node.orgId}, ${name})
      ON CONFLICT (org_id, name) WHERE status <> 'retired' DO NOTHING RETURNING id`;
    if (inserted.length === 1) return name;
  }
}

/** A new key for a node that exists. Its earlier certificates end: whoever held them is replaced. */
async function rejoin(deps: Dependencies, tx: Tx, token: Consumed, key: KeyRequest): Promise<Joined> {
  const node = { id: token.enrolled_node_id, orgId: token.org_id };
  // Before the certificate, whose row would lock the node's more weakly: two would wait for each other.
  await tx`SELECT FROM nodes WHERE id = ${node.id} FOR UPDATE`;
  const certificate = await certify(tx, deps.authority, node, key, "enrollment");
  const moved = await moveNode(tx, node.id, "enrolled", { keepSerial: certificate.serial });
  if (!moved) throw new Error("a token for a node that does not exist");
  if ("refused" in moved) throw new ApiError("node_retired");
  const changed = () => deps.directory.changed(moved);
  return { nodeId: node.id, orgId: node.orgId, name: moved.row.name, certificate, changed };
}

async function recordEnrolled(
  { log }: Dependencies,
  tx: Tx,
  { nodeId, orgId, name, certificate }: Joined,
  { token, request, correlationId }: { token: Consumed; request: EnrollmentRequest; correlationId: string },
): Promise<void> {
  const { hostname, agent_version } = request.facts;
  await recordAudit(tx, log, {
    orgId,
    by: { actor_type: "node", actor_id: nodeId, actor_name: name, role: "none" },
    action: "node.enroll",
    target: { type: "node", id: nodeId, name },
    result: "allowed",
    correlationId,
    details: {
      token_id: token.id,
      serial: certificate.serial,
      again: token.node_id !== null,
      hostname,
      agent_version,
    },
  });
}

/** In the trail of the token's organization, when it is one of ours. */
async function recordRefused(
  { system, log }: Dependencies,
  secretHash: Buffer,
  request: EnrollmentRequest,
  { error, correlationId }: { error: ApiError; correlationId: string },
): Promise<void> {
  const [token] = await system<{ id: string; org_id: string }[]>`
    SELECT id, org_id FROM enrollment_tokens WHERE secret_hash = ${secretHash}`;
  await recordAudit(system, log, {
    orgId: token?.org_id ?? null,
    by: { actor_type: "anonymous", actor_id: null, actor_name: "anonymous", role: "none" },
    action: "node.enroll",
    target: { type: "enrollment_token", id: token?.id ?? null, name: request.facts.hostname },
    result: "failed",
    reason: error.code,
    correlationId,
  });
}
