// Renewal: a certificate for a new key, to a node that presents its present certificate. That one stays valid until it
// expires.

import { ApiError } from "@holdfast/contracts/errors";
import type { Sql } from "../../database/connect.ts";
import type { Authority } from "../../identity/authority.ts";
import type { IssuanceGate } from "../../identity/issuance-gate.ts";
import { readKeyRequest } from "../../identity/requests.ts";
import { takeAttempt } from "../../mechanisms/rate-limit.ts";
import { type CertificateRow, certify } from "./certificates.ts";

/** An agent renews twice a day; one that cannot store its certificates must not fill the table. */
const renewals = { attempts: 60, windowSeconds: 60 * 60 };

type Renewing = { id: string; orgId: string; serial: string };

export async function renew(
  { system, authority, gate }: { system: Sql; authority: Authority; gate: Pick<IssuanceGate, "check"> },
  node: Renewing,
  csr: string,
): Promise<CertificateRow> {
  gate.check();
  const request = readKeyRequest(csr);
  await takeAttempt(system, renewals, "renew", node.id);
  return system.begin(async (tx) => {
    // Held until the commit: a concurrent revocation waits, and then revokes the new certificate too. The time is read
    // outside of the locking query, and so after the lock was taken.
    const [held] = await tx<{ now: Date }[]>`
      SELECT clock_timestamp() AS now FROM (SELECT FROM nodes WHERE id = ${node.id} FOR SHARE) AS held`;
    if (!held) throw new ApiError("identity_revoked");
    const clocks = { ours: new Date(), database: held.now };
    // A separate statement, so that it sees the changes of the previous holder of the lock.
    const replaces = node.serial;
    const certificate = await certify(tx, authority, { node, request, clocks, issuedFor: "renewal", replaces });
    if (!certificate) throw new ApiError("identity_revoked");
    return certificate;
  });
}
