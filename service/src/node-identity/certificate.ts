// What a client certificate says, and whether it is accepted at a given moment: the same for every listener
// that nodes connect to, for certificates of a connection and forwarded by an ingress. Parsed once, verified again
// on every request: a certificate may expire, and a node may be revoked, while a connection or a resumed
// session is open.

import type { X509Certificate } from "node:crypto";
import type { ErrorCode } from "@holdfast/contracts/errors";

export const CLIENT_AUTH = "1.3.6.1.5.5.7.3.2";

export type ShownCertificate =
  | { kind: "none" }
  | { kind: "foreign" }
  /** Ours, but not made for a node. */
  | { kind: "other"; serial: string }
  | { kind: "node"; nodeId: string; serial: string; notBefore: Date; notAfter: Date }
  | ShownByIngress;

export type ShownByIngress = {
  kind: "ingress";
  name: string;
  /** Of the token that it was issued with. */
  mark: string;
  serial: string;
  notBefore: Date;
  notAfter: Date;
};

/** Who may have signed a node's certificate. */
export type Issuers = {
  /** By signature. Says nothing about time, purpose or revocation. */
  hasIssued(leaf: X509Certificate): boolean;
};

export function issuersOf(authorities: readonly X509Certificate[]): Issuers {
  return { hasIssued: (leaf) => authorities.some((one) => leaf.checkIssued(one) && leaf.verify(one.publicKey)) };
}

/**
 * On a resumed session only the leaf is there; the CA that must have signed it comes from what we know
 * ourselves in any case, never from the connection.
 */
export function readShown(leaf: X509Certificate | undefined, issuers: Issuers): ShownCertificate {
  if (!leaf) return { kind: "none" };
  if (!issuers.hasIssued(leaf)) return { kind: "foreign" };
  const serial = leaf.serialNumber.toLowerCase();
  // Node's `keyUsage` is the extended key usage.
  if (!leaf.keyUsage?.includes(CLIENT_AUTH)) return { kind: "other", serial };
  const validity = { notBefore: leaf.validFromDate, notAfter: leaf.validToDate };
  const nodeId = nodeSan.exec(leaf.subjectAltName ?? "")?.[1];
  if (nodeId !== undefined) return { kind: "node", nodeId, serial, ...validity };
  const name = ingressSan.exec(leaf.subjectAltName ?? "")?.[1];
  const mark = /^CN=([\w-]{43})$/.exec(leaf.subject)?.[1];
  if (name !== undefined && mark !== undefined) return { kind: "ingress", name, mark, serial, ...validity };
  return { kind: "other", serial };
}

export type Judgement = { nodeId: string; serial: string } | { refused: ErrorCode };

/** `revoked`: whether the node's identity, or this certificate, was revoked. */
export function judge(shown: ShownCertificate, facts: { now: number; revoked: boolean }): Judgement {
  switch (shown.kind) {
    case "none":
      return { refused: "certificate_missing" };
    case "foreign":
      return { refused: "certificate_untrusted" };
    case "other":
    case "ingress":
      return { refused: "certificate_unusable" };
    case "node": {
      // Before the dates: a revoked node must not take an expired certificate for its only problem.
      if (facts.revoked) return { refused: "identity_revoked" };
      if (facts.now < shown.notBefore.getTime()) return { refused: "certificate_not_yet_valid" };
      if (facts.now > shown.notAfter.getTime()) return { refused: "cert_expired" };
      return { nodeId: shown.nodeId, serial: shown.serial };
    }
  }
}

const nodeSan = /^URI:holdfast:\/\/node\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;
const ingressSan = /^URI:holdfast:\/\/ingress\/([a-z0-9-]{1,63})$/;
