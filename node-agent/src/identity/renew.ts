// When a certificate is renewed, and how: a new key, a request over the present certificate, and the
// file replaced as a whole. The time is chosen once per certificate, near half its life, so that
// nodes that joined together do not renew together.

import { X509Certificate } from "node:crypto";
import type { IssuedCertificate } from "@holdfast/contracts/node-protocol";
import { certificateRequest, newPrivateKey, privateKeyPem } from "@holdfast/kit/certificate-request";
import { type CertificateFacts, type Identity, parseIdentity, writeIdentity } from "./identity-file.ts";
import type { StateFiles } from "./state-directory.ts";
import { sha256OfRoot, writeTrust } from "./trust-file.ts";

const JITTER = 0.1;

/** `random` in [0, 1): half the life, a tenth of it earlier or later. */
export function renewalDueAt({ notBefore, notAfter }: CertificateFacts, random: number): number {
  return Math.round(notBefore + (notAfter - notBefore) * (0.5 + JITTER * (2 * random - 1)));
}

export function renewalDue(certificate: CertificateFacts, now: number, random: number): boolean {
  return now >= renewalDueAt(certificate, random);
}

export type Renewed = { identity: Identity; roots: string[] };

/** Into the files, once it is there. */
export async function renew({ files, ...request }: RenewalRequest & { files: StateFiles }): Promise<Renewed> {
  const renewed = await requestRenewal(request);
  const known = new Set(request.roots.map(sha256OfRoot));
  if (
    renewed.roots.some((root) => !known.has(sha256OfRoot(root))) ||
    renewed.roots.length !== request.roots.length
  ) {
    writeTrust(files, renewed.roots);
  }
  writeIdentity(files, renewed.identity);
  return renewed;
}

type RenewalRequest = {
  identity: Pick<Identity, "nodeId">;
  roots: readonly string[];
  /** Sends the request. */
  ask: (csr: string) => Promise<IssuedCertificate & { trust_bundle: string[] }>;
};

/**
 * The new roots are believed because the answer came over a connection that
 * the present roots vouch for; a new set without any of them would be a break, and is refused.
 */
export async function requestRenewal({ identity, roots, ask }: RenewalRequest): Promise<Renewed> {
  const key = newPrivateKey();
  const issued = await ask(certificateRequest(key, identity.nodeId));
  const keyPem = privateKeyPem(key);
  const renewed = parseIdentity(keyPem + issued.certificate, "the server's answer");
  if (renewed.nodeId !== identity.nodeId) {
    throw new Error(`The server answered with a certificate of another node, ${renewed.nodeId}; it is not used.`);
  }
  const known = new Set(roots.map(sha256OfRoot));
  const trusted = issued.trust_bundle.length > 0 ? issued.trust_bundle : [...roots];
  if (!trusted.some((root) => known.has(sha256OfRoot(root)))) {
    throw new Error("The server answered with roots that share none with the present ones; nothing is changed.");
  }
  checkChain(renewed.chainPem, trusted);
  return { identity: renewed, roots: trusted };
}

/** Leaf first, each signed by the next, the last by one of the roots. Throws when it is not so. */
export function checkChain(chainPem: string, roots: readonly string[]): void {
  const chain = (chainPem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []).map(
    (pem) => new X509Certificate(pem),
  );
  const anchors = roots.map((root) => new X509Certificate(root));
  const signed = chain.every((certificate, index) => {
    const above = chain[index + 1];
    const issuers = above ? [above] : anchors;
    return issuers.some(
      (issuer) => issuer.ca && certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey),
    );
  });
  if (chain.length === 0 || !signed) {
    throw new Error("The certificate that the server answered with does not lead to its root; it is not used.");
  }
}
