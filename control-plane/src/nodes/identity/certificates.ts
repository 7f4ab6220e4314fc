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

/** What both clocks showed at one moment. */
export type Clocks = { ours: Date; database: Date };

export type Certified = {
  node: { id: string; orgId: string };
  request: KeyRequest;
  clocks: Clocks;
  issuedFor: "enrollment" | "renewal" | "recovery";
  /** The serial of the certificate that a renewal replaces, which must not have been revoked. */
  replaces?: string;
};

/**
 * Undefined: the certificate to replace was revoked. Throws `csr_invalid` for a key whose certificate was revoked or has
 * expired: it is not issued again.
 */
export async function certify(
  tx: Tx,
  authority: Authority,
  { node, request, clocks, issuedFor, replaces }: Certified,
): Promise<CertificateRow | undefined> {
  const issued = authority.issueToNode({ id: node.id, publicKey: request.publicKey }, agreedTime(clocks));
  const present = replaces ?? null;
  // The second of two concurrent requests for one key waits here. Its update changes nothing, and returns the first one's
  // certificate.
  const [row] = await tx<CertificateRow[]>`
    INSERT INTO node_certificates AS c
      (serial, org_id, node_id, key_sha256, chain, issuer, issued_for, not_before, not_after)
    SELECT ${issued.serial}, ${node.orgId}::uuid, ${node.id}::uuid, ${request.keySha256}::bytea, ${issued.chain},
           ${issued.issuer}, ${issuedFor}, ${issued.notBefore}::timestamptz, ${issued.notAfter}::timestamptz
    WHERE ${present}::text IS NULL
       OR EXISTS (SELECT FROM node_certificates WHERE serial = ${present} AND revoked_at IS NULL)
    ON CONFLICT (node_id, key_sha256) DO UPDATE SET revoked_at = c.revoked_at
    RETURNING c.serial, c.chain, c.not_before, c.not_after, c.revoked_at IS NULL AND c.not_after > now() AS good`;
  if (row && !row.good) throw endedKey();
  return row;
}

/**
 * This process's time, if the database's agrees. A certificate issued by a clock that is ahead is not valid yet, and one
 * issued by a clock that is behind expires too soon.
 */
function agreedTime({ ours, database }: Clocks): Date {
  const apartMs = Math.abs(ours.getTime() - database.getTime());
  if (apartMs > CLOCK_TOLERANCE_SECONDS * 1000) throw new ApiError("server_clock_skew");
  return ours;
}

export function endedKey(): ApiError {
  const problem = "the certificate of this key expired or was revoked; create a new key";
  return new ApiError("csr_invalid", { details: { fields: [{ field: "body.csr", problem }] } });
}
