// When a certificate is renewed, and how: a new key and a request over the present certificate. The time is chosen once
// per certificate, near half its lifetime, so that nodes that joined together do not renew together. The new
// certificate is a candidate (candidates.ts): it replaces nothing before it has worked.

import { X509Certificate } from "node:crypto";
import { certificateStage } from "@holdfast/contracts/node/certificate-stage";
import { CLOCK_TOLERANCE_SECONDS } from "@holdfast/contracts/node/limits";
import type { IssuedCertificate } from "@holdfast/contracts/node/protocol";
import { certificateRequest, newPrivateKey, privateKeyPem } from "@holdfast/kit/certificate-request";
import { refusedRoots } from "./accept-trust.ts";
import { type CertificateFacts, type Identity, parseIdentity } from "./identity-file.ts";
import { HostProblem } from "./state-directory.ts";
import { isValidByBoth } from "./trials.ts";

const JITTER = 0.1;
/** Attempts with one certificate, before another one is requested. */
const TRIES = 3;
/** A certificate that begins later than this was issued with a wrong clock, or this host's clock is wrong. */
const LONGEST_WAIT_MS = 3_600_000;

/** `random` in [0, 1): half the lifetime, a tenth of it earlier or later. */
export function renewalDueAt({ notBefore, notAfter }: CertificateFacts, random: number): number {
  return Math.round(notBefore + (notAfter - notBefore) * (0.5 + JITTER * (2 * random - 1)));
}

/** The newest certificate, which is not in force yet. */
export type Pending = "none" | "not_yet_valid" | "to_be_tried" | "failed";

/**
 * While the clocks disagree, new certificates would begin in the future, so nothing is renewed: the wrong clock is usually
 * corrected before the certificate expires. Once renewal is overdue by both clocks it is tried anyway, because a host
 * whose clock stays a few minutes off would otherwise lose its identity.
 */
export function renewalDue(facts: {
  certificate: CertificateFacts;
  dueAt: number;
  /** By this host's clock. */
  now: number;
  /** The server's clock minus this host's, as far as it is certain. */
  skewSeconds: number;
  pending: Pending;
}): boolean {
  const { certificate, dueAt, now, skewSeconds, pending } = facts;
  const serverNow = now + skewSeconds * 1000;
  if (pending === "to_be_tried") return false;
  if (Math.abs(skewSeconds) <= CLOCK_TOLERANCE_SECONDS) return Math.min(now, serverNow) >= dueAt;
  if (pending === "not_yet_valid") return false;
  return [now, serverNow].every((time) => certificateStage(certificate, time) === "renewal_overdue");
}

export function pendingOf(
  offered: CertificateFacts | undefined,
  facts: { failures: number; now: number; serverNow: number },
): Pending {
  if (!offered) return "none";
  if (offered.notBefore > Math.min(facts.now, facts.serverNow)) return "not_yet_valid";
  return isValidByBoth(offered, facts) && facts.failures < TRIES ? "to_be_tried" : "failed";
}

/** `refused`: parts of the response beside the certificate that were not accepted. */
export type Renewed = { identity: Identity; refused: string[] };

type RenewalRequest = {
  identity: Identity;
  roots: readonly string[];
  /** This host's clock. */
  now: () => number;
  /** Sends the request. */
  ask: (csr: string) => Promise<IssuedCertificate & { trust_bundle: string[] }>;
};

/** The certificate must chain to a root that the node has: roots only change by signed bundles. */
export async function requestRenewal({ identity, roots, now, ask }: RenewalRequest): Promise<Renewed> {
  const key = newPrivateKey();
  const issued = await ask(certificateRequest(key, identity.nodeId));
  const keyPem = privateKeyPem(key);
  const renewed = parseIdentity(keyPem + issued.certificate, "the server's answer");
  if (renewed.nodeId !== identity.nodeId) {
    throw new Error(`The server returned a certificate of another node, ${renewed.nodeId}; it is not used.`);
  }
  if (renewed.certificate.notBefore > Math.min(identity.certificate.notAfter, now() + LONGEST_WAIT_MS)) {
    const from = new Date(renewed.certificate.notBefore).toISOString();
    throw new HostProblem(
      "clock_skew",
      `The server issued a certificate that is valid only from ${from}; it is not used.`,
    );
  }
  checkChain(renewed.chainPem, roots);
  return { identity: renewed, refused: refusedRoots(roots, issued.trust_bundle) };
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
    throw new Error("The certificate that the server returned does not chain to a trusted root; it is not used.");
  }
}
