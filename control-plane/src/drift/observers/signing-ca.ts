// Whether this api accepts what it signs, and signs with the CA that nodes were enrolled with. A canary shows the first: a
// certificate as nodes get them, read as the node-facing listener reads it. An api that has lost its CA serves with a
// temporary one, which has signed none of the certificates that nodes have.

import { X509Certificate } from "node:crypto";
import { readCertificate } from "@holdfast/service/node-identity/certificate";
import type { Sql } from "../../database/connect.ts";
import type { Authority } from "../../identity/authority.ts";
import { makeKeyPair } from "../../identity/certificates.ts";
import { type PlatformObservation, recordPlatform } from "../evidence/platform.ts";

const NOBODY = "00000000-0000-4000-8000-000000000000";

/** `known`: the root of the last signing CA that was in order. */
export function judgeSigningCa(
  authority: Authority | undefined,
  known: string | undefined,
  now: Date,
): PlatformObservation[] {
  const times = { observedAt: now, seenAt: now };
  const root = authority?.rootSha256[0];
  const missing = "The CA that signed the certificates of nodes is not in the keyring.";
  const isSame = root !== undefined && (known === undefined || known === root);
  const accepts = authority !== undefined && acceptsOwn(authority, now);
  return [
    {
      ...{ kind: "signing_ca", value: isSame ? "unchanged" : "changed", ...times },
      detail: { root: (isSame ? root : known) ?? "", ...(authority ? {} : { text: missing }) },
    },
    {
      ...{ kind: "ca_trust", value: accepts && isSame ? "match" : "mismatch", ...times },
      ...(authority ? {} : { detail: { text: missing } }),
    },
  ];
}

function acceptsOwn(authority: Authority, now: Date): boolean {
  const publicKey = makeKeyPair().publicKey;
  const { chain } = authority.issueToNode({ id: NOBODY, publicKey }, now);
  return readCertificate(new X509Certificate(chain), authority).kind === "node";
}

/** Returns the ids of nodes to classify again. */
export async function observeSigningCa(system: Sql, authority: Authority | undefined): Promise<string[]> {
  const [row] = await system<{ now: Date; root: string | null }[]>`
    SELECT now() AS now, (SELECT detail->>'root' FROM platform_observations
      WHERE kind = 'signing_ca' AND replaced_at IS NULL) AS root`;
  if (!row) return [];
  const changed = await recordPlatform(system, judgeSigningCa(authority, row.root || undefined, row.now));
  if (!changed) return [];
  const due = await system<{ node_id: string }[]>`
    UPDATE node_verdicts SET review_at = now() WHERE review_at > now() RETURNING node_id`;
  return due.map(({ node_id }) => node_id);
}
