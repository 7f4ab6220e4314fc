// Exchanges the secret of a recovery bundle for a new identity of its node, in one transaction, like a recovery token
// (recovery/recover.ts). An operator decided it, so every earlier certificate, token and bundle of the node ends.

import { ApiError } from "@holdfast/contracts/errors";
import { recordAudit } from "../audit/record.ts";
import type { Sql, Tx } from "../database/connect.ts";
import { type KeyRequest, readKeyRequest } from "../identity/requests.ts";
import { hashSecret } from "../mechanisms/secrets.ts";
import { moveNode, positionOf } from "../nodes/directory/state.ts";
import { certify } from "../nodes/identity/certificates.ts";
import { type BundleFacts, decideBundle } from "../recovery/decide.ts";
import {
  type Claim,
  holdNode,
  type RecoverDependencies,
  type Recovered,
  RecoveryRefused,
  type RecoveryRequest,
  refuseWrongClock,
  removeExpired,
  takeTurn,
} from "../recovery/recover.ts";
import { issueTokens } from "../recovery/tokens.ts";
import { isBacked } from "../tokens/standing.ts";

export async function recoverByBundle(deps: RecoverDependencies, request: RecoveryRequest): Promise<Recovered> {
  const ours = new Date();
  deps.gate.check();
  refuseWrongClock(request.sent_at, ours);
  const secretHash = hashSecret(request.token);
  const known = await selectKnown(deps.system, secretHash);
  // A bundle of another node is none for this one.
  if (known?.node_id !== request.node_id) throw new ApiError("bundle_unknown");
  takeTurn(deps.pace);
  const key = readKeyRequest(request.csr);
  const clocks = { ours, database: known.now };
  const { changed, ...recovered } = await deps.pace.run(() =>
    deps.system.begin((tx) => exchange(deps, tx, { request, key, secretHash, clocks })),
  );
  changed();
  return { ...recovered, keySha256: key.keySha256 };
}

type Exchange = {
  request: RecoveryRequest;
  key: KeyRequest;
  secretHash: Buffer;
  clocks: { ours: Date; database: Date };
};

async function exchange(deps: RecoverDependencies, tx: Tx, { request, key, secretHash, clocks }: Exchange) {
  const node = await holdNode(tx, request.node_id, deps.staleAfterSeconds);
  const bundle = await readBundle(tx, secretHash, key.keySha256);
  if (!node || !bundle) throw new ApiError("bundle_unknown");
  const claim: Claim = {
    ...{ nodeId: node.id, orgId: node.org_id, name: node.name, seq: bundle.seq },
    bundle: { id: bundle.id, correlationId: bundle.correlation_id },
  };
  const decision = decideBundle({ node: { position: positionOf(node), cloned: node.cloned }, bundle });
  if ("refuse" in decision) throw new RecoveryRefused(decision.refuse, claim, node.connected);
  const again = decision.accept === "again";
  if (again) await removeExpired(tx, node.id, key.keySha256);
  const certificate = await certify(tx, deps.authority, {
    node: { id: node.id, orgId: node.org_id },
    ...{ request: key, clocks, issuedFor: "recovery" },
  });
  if (!certificate) throw new Error("a certificate that replaces none was refused");
  // Before the node is moved, which revokes all bundles of the node that were not used.
  await tx`
    UPDATE recovery_bundles SET used_at = coalesce(used_at, now()), used_key_sha256 = ${key.keySha256}
    WHERE id = ${bundle.id}`;
  const moved = await moveNode(tx, node.id, "enrolled", {
    keepSerial: certificate.serial,
    // The response to the first request may have arrived, with a token.
    keepRecoveryTokens: again,
  });
  if (!moved || "refused" in moved) throw new Error("a node that was locked cannot be enrolled");
  const token = await nextToken(deps, tx, claim);
  const story = {
    ...{ orgId: node.org_id, action: "node.recover", correlationId: bundle.correlation_id },
    by: { actor_type: "node", actor_id: node.id, actor_name: node.name, role: "node" },
    target: { type: "node", id: node.id, name: node.name },
  } as const;
  await deps.failures.recovered(tx, story);
  await recordAudit(tx, deps.log, {
    ...story,
    result: "allowed",
    details: {
      ...{ bundle_id: bundle.id, cause: request.cause, again, serial: certificate.serial },
      ...{ next_token_seq: token.seq, instance_id: request.instance_id, boot_id: request.boot_id },
      last_heard_at: node.heartbeat_at?.toISOString() ?? null,
    },
  });
  return { ...claim, certificate, token, changed: () => deps.directory.changed(moved) };
}

async function nextToken({ policy, profile }: RecoverDependencies, tx: Tx, { nodeId, orgId }: Claim) {
  const issued = await issueTokens(tx, [{ nodeId, orgId, shown: 0 }], {
    ...{ profile, maxAgeSeconds: policy.tokenMaxAgeSeconds },
  });
  const token = issued.get(nodeId);
  if (!token) throw new Error("a node that may recover gets no further token");
  return token;
}

async function selectKnown(system: Sql, secretHash: Buffer): Promise<{ node_id: string; now: Date } | undefined> {
  const [row] = await system<{ node_id: string; now: Date }[]>`
    SELECT node_id, clock_timestamp() AS now FROM recovery_bundles WHERE secret_hash = ${secretHash}`;
  return row;
}

type HeldBundle = BundleFacts["bundle"] & { id: string; seq: number; correlation_id: string };

/** It is limited to what its creator may do now, like everything that a person issues. */
async function readBundle(tx: Tx, secretHash: Buffer, keySha256: Buffer): Promise<HeldBundle | undefined> {
  const [bundle] = await tx<HeldBundle[]>`
    SELECT t.id, t.seq, t.correlation_id, t.expires_at <= now() AS expired,
           t.revoked_at IS NOT NULL OR NOT ${isBacked(tx, "enrollment_token")} AS revoked,
           CASE WHEN t.used_key_sha256 IS NULL THEN 'nobody' WHEN t.used_key_sha256 = ${keySha256} THEN 'this_key'
                ELSE 'another_key' END AS "usedBy"
    FROM recovery_bundles t WHERE t.secret_hash = ${secretHash} FOR UPDATE OF t`;
  return bundle;
}
