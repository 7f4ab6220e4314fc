// Exchanges a recovery token for a new identity of its node, in one transaction: token, certificate, next token and audit,
// all or nothing. The same machine may repeat the request and gets the same certificate; nobody else gets any.

import type { BodyOf } from "@holdfast/contracts/endpoint";
import type { recoverNode } from "@holdfast/contracts/endpoints/recovery";
import { ApiError, type ErrorCode } from "@holdfast/contracts/errors";
import { CLOCK_TOLERANCE_SECONDS } from "@holdfast/contracts/node/limits";
import type { RecoveryToken } from "@holdfast/contracts/node/recovery";
import type { Log } from "@holdfast/service/log";
import type { FailureAudit } from "../audit/failures/failures.ts";
import { recordAudit } from "../audit/record.ts";
import type { Sql, Tx } from "../database/connect.ts";
import type { Authority } from "../identity/authority.ts";
import type { IssuanceGate } from "../identity/issuance-gate.ts";
import { type KeyRequest, readKeyRequest } from "../identity/requests.ts";
import { hashSecret } from "../mechanisms/secrets.ts";
import type { NodeDirectory } from "../nodes/directory/standings.ts";
import { moveNode, positionOf, type StatusRow } from "../nodes/directory/state.ts";
import { type CertificateRow, certify } from "../nodes/identity/certificates.ts";
import { decideRecovery, type RecoveryFacts } from "./decide.ts";
import type { Pace } from "./pace.ts";
import type { RecoveryPolicy } from "./settings.ts";
import { issueTokens } from "./tokens.ts";

export type RecoveryRequest = BodyOf<typeof recoverNode>;

export type RecoverDependencies = {
  system: Sql;
  authority: Authority;
  gate: Pick<IssuanceGate, "check">;
  directory: NodeDirectory;
  policy: RecoveryPolicy;
  pace: Pace;
  /** The name of the active environment profile. */
  profile: string;
  staleAfterSeconds: number;
  failures: Pick<FailureAudit, "recovered">;
  log: Log;
};

/** Of the node that the token or bundle is of; `seq` is that of the token or bundle. */
export type Claim = { nodeId: string; orgId: string; name: string; seq: number; bundle?: BundleRef };
/** Everything that is done with a bundle has its correlation id. */
export type BundleRef = { id: string; correlationId: string };

export type Recovered = Claim & { keySha256: Buffer; certificate: CertificateRow; token: RecoveryToken };

/** The token is one of this node: what was refused is about the node, and belongs in its history. */
export class RecoveryRefused extends ApiError {
  readonly claim: Claim;
  /** Whether the node itself was connected while somebody presented an older token. */
  readonly connected: boolean;

  constructor(code: ErrorCode, claim: Claim, connected: boolean) {
    // A half-open connection is noticed in less time than that.
    super(code, code === "recovery_not_needed" ? { headers: { "retry-after": "30" } } : {});
    this.claim = claim;
    this.connected = connected;
  }
}

export async function recover(
  deps: RecoverDependencies,
  request: RecoveryRequest,
  correlationId: string,
): Promise<Recovered> {
  const ours = new Date();
  deps.gate.check();
  refuseWrongClock(request.sent_at, ours);
  const secretHash = hashSecret(request.token);
  const known = await selectKnown(deps.system, secretHash);
  // A token of another node is none for this one.
  if (known?.node_id !== request.node_id) throw new ApiError("recovery_token_unknown");
  takeTurn(deps.pace);
  const key = readKeyRequest(request.csr);
  const clocks = { ours, database: known.now };
  const { changed, ...recovered } = await deps.pace.run(() =>
    deps.system.begin((tx) => exchange(deps, tx, { request, key, secretHash, correlationId, clocks })),
  );
  changed?.();
  return { ...recovered, keySha256: key.keySha256 };
}

type Exchange = {
  request: RecoveryRequest;
  key: KeyRequest;
  secretHash: Buffer;
  correlationId: string;
  clocks: { ours: Date; database: Date };
};

async function exchange(
  deps: RecoverDependencies,
  tx: Tx,
  { request, key, secretHash, correlationId, clocks }: Exchange,
): Promise<Omit<Recovered, "keySha256"> & { changed: (() => void) | undefined }> {
  // Sent together: the token is read after the node was locked.
  const [node, token] = await Promise.all([
    holdNode(tx, request.node_id, deps.staleAfterSeconds),
    readToken(tx, secretHash, key.keySha256),
  ]);
  if (!node || !token) throw new ApiError("recovery_token_unknown");
  const claim = { nodeId: node.id, orgId: node.org_id, name: node.name, seq: Number(token.seq) };
  const decision = decideRecovery({
    node: { position: positionOf(node), connected: node.connected, cloned: node.cloned },
    token: { ...token, ofProfile: token.profile === deps.profile && request.profile === deps.profile },
    automatic: deps.policy.automatic,
  });
  if ("refuse" in decision) {
    throw new RecoveryRefused(decision.refuse, claim, node.connected);
  }
  const again = decision.accept === "again";
  // Its certificate may have expired since; the key is still the token's only one.
  if (again) await removeExpired(tx, node.id, key.keySha256);
  const certificate = await certify(tx, deps.authority, {
    node: { id: node.id, orgId: node.org_id },
    ...{ request: key, clocks, issuedFor: "recovery" },
  });
  if (!certificate) throw new Error("a certificate that replaces none was refused");
  const story = {
    ...{ orgId: node.org_id, action: "node.recover", correlationId },
    by: { actor_type: "node", actor_id: node.id, actor_name: node.name, role: "node" },
    target: { type: "node", id: node.id, name: node.name },
  } as const;
  const [{ moved, next }] = await Promise.all([
    replaceIdentity(deps, tx, { claim, certificate, secretHash, key }),
    deps.failures.recovered(tx, story),
  ]);
  await recordAudit(tx, deps.log, {
    ...story,
    result: "allowed",
    details: {
      ...{
        cause: request.cause,
        again,
        serial: certificate.serial,
        token_seq: claim.seq,
        next_token_seq: next.seq,
      },
      ...{ instance_id: request.instance_id, boot_id: request.boot_id },
      last_heard_at: node.heartbeat_at?.toISOString() ?? null,
    },
  });
  return { ...claim, certificate, token: next, changed: () => deps.directory.changed(moved) };
}

async function replaceIdentity(
  { policy, profile }: RecoverDependencies,
  tx: Tx,
  used: { claim: Claim; certificate: CertificateRow; secretHash: Buffer; key: KeyRequest },
) {
  const { claim, certificate, secretHash, key } = used;
  const recipient = { nodeId: claim.nodeId, orgId: claim.orgId, shown: claim.seq };
  const kept = { keepSerial: certificate.serial, keepRecoveryTokens: true };
  const [, moved, issued] = await Promise.all([
    tx`
      UPDATE recovery_tokens SET used_at = coalesce(used_at, now()), used_key_sha256 = ${key.keySha256},
        held_at = coalesce(held_at, now())
      WHERE secret_hash = ${secretHash}`,
    moveNode(tx, claim.nodeId, "enrolled", kept),
    issueTokens(tx, [recipient], { profile, maxAgeSeconds: policy.tokenMaxAgeSeconds }),
  ]);
  if (!moved || "refused" in moved) throw new Error("a node that was locked cannot be enrolled");
  const next = issued.get(claim.nodeId);
  if (!next) throw new Error("a node that may recover gets no further token");
  return { moved, next };
}

/** With a wrong clock the host could not tell whether what it gets is valid. */
export function refuseWrongClock(sentAt: string, ours: Date): void {
  const apartMs = Math.abs(Date.parse(sentAt) - ours.getTime());
  if (apartMs <= CLOCK_TOLERANCE_SECONDS * 1000) return;
  throw new ApiError("host_clock_skew", { details: { server_time: ours.toISOString() } });
}

/** Throws when the host has to wait for its turn. */
export function takeTurn(pace: Pace): void {
  const waitSeconds = pace.take();
  if (waitSeconds !== undefined) throw later(waitSeconds);
}

function later(seconds: number): ApiError {
  return new ApiError("rate_limit_exceeded", {
    message: "Many nodes recover right now.",
    headers: { "retry-after": String(seconds) },
    details: { retry_after_seconds: seconds },
  });
}

async function selectKnown(system: Sql, secretHash: Buffer): Promise<{ node_id: string; now: Date } | undefined> {
  const [row] = await system<{ node_id: string; now: Date }[]>`
    SELECT node_id, clock_timestamp() AS now FROM recovery_tokens WHERE secret_hash = ${secretHash}`;
  return row;
}

type HeldNode = StatusRow & { connected: boolean; cloned: boolean; heartbeat_at: Date | null };

/** Locks the node before the token, like every other change of its identity. */
export async function holdNode(tx: Tx, nodeId: string, staleAfterSeconds: number): Promise<HeldNode | undefined> {
  const locked = tx`SELECT FROM nodes WHERE id = ${nodeId} FOR UPDATE`;
  // A statement of its own, sent at once: it sees what was committed while the lock was waited for.
  const read = tx<HeldNode[]>`
    SELECT n.id, n.org_id, n.name, n.status, n.status_reason, n.revoked_at, p.heartbeat_at,
           coalesce(p.disconnected_at IS NULL AND p.heartbeat_at > now() - ${`${staleAfterSeconds} seconds`}::interval,
             false) AS connected,
           EXISTS (SELECT FROM incidents i WHERE i.node_id = n.id AND i.closed_at IS NULL
             AND i.reason = 'cloned_identity_detected') AS cloned
    FROM nodes n LEFT JOIN node_presence p ON p.node_id = n.id WHERE n.id = ${nodeId}`;
  const [, [node]] = await Promise.all([locked, read]);
  return node;
}

type TokenRow = Omit<RecoveryFacts["token"], "ofProfile"> & { seq: string; profile: string };

async function readToken(tx: Tx, secretHash: Buffer, keySha256: Buffer): Promise<TokenRow | undefined> {
  const [token] = await tx<TokenRow[]>`
    SELECT seq, profile, expires_at <= now() AS expired, revoked_at IS NOT NULL AS revoked,
           EXISTS (SELECT FROM recovery_tokens newer WHERE newer.node_id = t.node_id AND newer.seq > t.seq
             AND newer.held_at IS NOT NULL) AS superseded,
           CASE WHEN used_key_sha256 IS NULL THEN 'nobody' WHEN used_key_sha256 = ${keySha256} THEN 'this_key'
                ELSE 'another_key' END AS "usedBy"
    FROM recovery_tokens t WHERE secret_hash = ${secretHash}`;
  return token;
}

export async function removeExpired(tx: Tx, nodeId: string, keySha256: Buffer): Promise<void> {
  await tx`
    DELETE FROM node_certificates
    WHERE node_id = ${nodeId} AND key_sha256 = ${keySha256} AND revoked_at IS NULL AND not_after <= now()`;
}
