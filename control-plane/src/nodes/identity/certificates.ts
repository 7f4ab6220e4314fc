// Certificates of nodes as rows. A key has one certificate: a repeated request for the same key, for example after a
// lost response, returns the same one.

import { ApiError } from "@holdfast/contracts/errors";
import { CLOCK_TOLERANCE_SECONDS } from "@holdfast/contracts/node/limits";
import type { IssuedCertificate } from "@holdfast/contracts/node/protocol";
import type { Queryable, Tx } from "../../database/connect.ts";
import type { Authority } from "../../identity/authority.ts";
import type { KeyRequest } from "../../identity/requests.ts";

export type CertificateRow = {
  serial: string;
  chain: string;
  not_before: Date;
  not_after: Date;
  /** Neither expired nor revoked. */
  good: boolean;
};

export function toIssued(row: CertificateRow): IssuedCertificate {
  return {
    certificate: row.chain,
    not_before: row.not_before.toISOString(),
    not_after: row.not_after.toISOString(),
  };
}

export async function certificateOfKey(
  db: Queryable,
  nodeId: string,
  keySha256: Buffer,
): Promise<CertificateRow | undefined> {
  const [row] = await db<CertificateRow[]>`
    SELECT serial, chain, not_before, not_after, revoked_at IS NULL AND not_after > now() AS good
    FROM node_certificates WHERE node_id = ${nodeId} AND key_sha256 = ${keySha256}`;
  return row;
}

/** Throws `csr_invalid` for a key whose certificate was revoked or has expired: it is not issued again. */
export async function certify(
  tx: Tx,
  authority: Authority,
  node: { id: string; orgId: string },
  request: KeyRequest,
  issuedFor: "enrollment" | "renewal",
): Promise<CertificateRow> {
  const issued = await authority.issueToNode({ id: node.id, publicKey: request.publicKey }, await agreedTime(tx));
  // The second of two concurrent requests for one key waits here and finds the first one's certificate.
  await tx`
    INSERT INTO node_certificates (serial, org_id, node_id, key_sha256, chain, issued_for, not_before, not_after)
    VALUES (${issued.serial}, ${node.orgId}, ${node.id}, ${request.keySha256}, ${issued.chain}, ${issuedFor},
            ${issued.notBefore}, ${issued.notAfter})
    ON CONFLICT (node_id, key_sha256) DO NOTHING`;
  const row = await certificateOfKey(tx, node.id, request.keySha256);
  if (!row) throw new Error("a certificate is missing in its own transaction");
  if (!row.good) throw endedKey();
  return row;
}

/**
 * This process's time, if the database's agrees. A certificate issued by a clock that is ahead is not valid yet, and one
 * issued by a clock that is behind expires too soon.
 */
async function agreedTime(tx: Tx): Promise<Date> {
  const [row] = await tx<{ now: Date }[]>`SELECT clock_timestamp() AS now`;
  const now = new Date();
  const apartMs = Math.abs(now.getTime() - (row?.now.getTime() ?? 0));
  if (apartMs > CLOCK_TOLERANCE_SECONDS * 1000) throw new ApiError("server_clock_skew");
  return now;
}

export function endedKey(): ApiError {
  const problem = "the certificate of this key expired or was revoked; create a new key";
  return new ApiError("csr_invalid", { details: { fields: [{ field: "body.csr", problem }] } });
}
