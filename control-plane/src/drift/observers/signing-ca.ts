// Whether this api accepts what it signs, signs with the CA that nodes were enrolled with, and whether everything in front of
// the node-facing listeners accepts it, too. A certificate as nodes get them, read as the listener reads it, shows the first;
// an api that has lost its CA serves with a temporary one, which has signed none of the certificates that nodes have. The
// last one is shown by canaries through the published addresses.

import { X509Certificate } from "node:crypto";
import { readCertificate } from "@holdfast/service/node-identity/certificate";
import type { Sql } from "../../database/connect.ts";
import type { Authority } from "../../identity/authority.ts";
import { makeKeyPair } from "../../identity/certificates.ts";
import { type CaTrust, type Place, THIS_API } from "../../identity/ingress-trust/decide.ts";
import { type PlatformObservation, recordPlatform } from "../evidence/platform.ts";

const NOBODY = "00000000-0000-4000-8000-000000000000";

export type Judged = { observations: PlatformObservation[]; trust: CaTrust };

/** `known`: the root of the last signing CA that was in order. `ingresses`: what canaries met. */
export function judgeSigningCa(
  authority: Authority | undefined,
  { known, ingresses, now }: { known: string | undefined; ingresses: CaTrust; now: Date },
): Judged {
  const times = { observedAt: now, seenAt: now };
  const root = authority?.rootSha256[0];
  const missing = "The CA that signed the certificates of nodes is not in the keyring.";
  const isSame = root !== undefined && (known === undefined || known === root);
  const trust = isSame && acceptsOwn(authority, now) ? ingresses : rejectedHere(authority ? undefined : missing);
  const text = textOf(trust);
  return {
    observations: [
      {
        ...{ kind: "signing_ca", value: isSame ? "unchanged" : "changed", ...times },
        detail: { root: (isSame ? root : known) ?? "", ...(authority ? {} : { text: missing }) },
      },
      { ...{ kind: "ca_trust", value: values[trust.state], ...times }, ...(text ? { detail: { text } } : {}) },
    ],
    trust,
  };
}

const values = { agrees: "match", mismatch: "mismatch", unknown: "unknown" } as const;

function acceptsOwn(authority: Authority | undefined, now: Date): boolean {
  if (!authority) return false;
  const publicKey = makeKeyPair().publicKey;
  const { chain } = authority.issueToNode({ id: NOBODY, publicKey }, now);
  return readCertificate(new X509Certificate(chain), authority).kind === "node";
}

function rejectedHere(why = "The CA is not the one that nodes were enrolled with."): CaTrust {
  return { state: "mismatch", at: [{ url: THIS_API, address: "", why }] };
}

function textOf(trust: CaTrust): string | undefined {
  if (trust.state === "agrees") return undefined;
  return trust.at.map(sentenceOf).join(" ") || undefined;
}

function sentenceOf({ url, address, why }: Place): string {
  if (url === THIS_API) return why;
  return `${url}${address === "" || url.includes(address) ? "" : ` (${address})`}: ${why}.`;
}

export type SigningCaSeen = {
  trust: CaTrust;
  /** Ids of nodes to classify again. */
  due: string[];
};

export async function observeSigningCa(
  system: Sql,
  authority: Authority | undefined,
  ingresses: CaTrust,
): Promise<SigningCaSeen> {
  const [row] = await system<{ now: Date; root: string | null }[]>`
    SELECT now() AS now, (SELECT detail->>'root' FROM platform_observations
      WHERE kind = 'signing_ca' AND replaced_at IS NULL) AS root`;
  if (!row) throw new Error("a query without a table returned no row");
  const { observations, trust } = judgeSigningCa(authority, {
    known: row.root || undefined,
    ingresses,
    now: row.now,
  });
  const changed = await recordPlatform(system, observations);
  if (!changed) return { trust, due: [] };
  const due = await system<{ node_id: string }[]>`
    UPDATE node_verdicts SET review_at = now() WHERE review_at > now() RETURNING node_id`;
  return { trust, due: due.map(({ node_id }) => node_id) };
}
