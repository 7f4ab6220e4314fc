// What a client certificate says, and whether it is accepted at a given moment: the same for every listener
// that nodes connect to, for certificates of a connection and forwarded by an ingress. Parsed once, verified again
// on every request: a certificate may expire, and a node may be revoked, while a connection or a resumed
// session is open.

import type { X509Certificate } from "node:crypto";
import type { ErrorCode } from "@holdfast/contracts/errors";

export const CLIENT_AUTH = "1.3.6.1.5.5.7.3.2";

export type PresentedCertificate =
  | { kind: "none" }
  /** Whoever presents it has its key, but nobody vouches for what it claims. */
  | { kind: "foreign"; nodeId: string | undefined; serial: string; sha256: string }
  /** Issued by this installation, but not for a node. */
  | { kind: "other"; serial: string }
  | { kind: "node"; nodeId: string; serial: string; notBefore: Date; notAfter: Date }
  /** The api's own, to see whether it arrives. It identifies nobody. */
  | { kind: "canary"; id: string; serial: string }
  | GatewayCertificate
  | IngressCertificate;

/** Of a gateway, which passes streams of nodes on to the gateway that has their terminal. */
export type GatewayCertificate = {
  kind: "gateway";
  instanceId: string;
  serial: string;
  notBefore: Date;
  notAfter: Date;
};

export type IngressCertificate = {
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
 * A resumed session has only the leaf. The CA that must have signed it always comes from the server's own
 * trust store, never from the connection.
 */
export function readCertificate(leaf: X509Certificate | undefined, issuers: Issuers): PresentedCertificate {
  if (!leaf) return { kind: "none" };
  const serial = leaf.serialNumber.toLowerCase();
  const nodeId = nodeSan.exec(leaf.subjectAltName ?? "")?.[1];
  if (!issuers.hasIssued(leaf)) return { kind: "foreign", nodeId, serial, sha256: leaf.fingerprint256 };
  // Node's `keyUsage` is the extended key usage.
  if (!leaf.keyUsage?.includes(CLIENT_AUTH)) return { kind: "other", serial };
  const validity = { notBefore: leaf.validFromDate, notAfter: leaf.validToDate };
  if (nodeId !== undefined) return { kind: "node", nodeId, serial, ...validity };
  const canary = canarySan.exec(leaf.subjectAltName ?? "")?.[1];
  if (canary !== undefined) return { kind: "canary", id: canary, serial };
  const instanceId = gatewayOf(leaf.subjectAltName);
  if (instanceId !== undefined) return { kind: "gateway", instanceId, serial, ...validity };
  const name = ingressSan.exec(leaf.subjectAltName ?? "")?.[1];
  const mark = /^CN=([\w-]{43})$/.exec(leaf.subject)?.[1];
  if (name !== undefined && mark !== undefined) return { kind: "ingress", name, mark, serial, ...validity };
  return { kind: "other", serial };
}

export type Judgement = { nodeId: string; serial: string } | { refused: ErrorCode };

/** `revoked`: whether the node's identity, or this certificate, was revoked. */
export function judge(presented: PresentedCertificate, facts: { now: number; revoked: boolean }): Judgement {
  switch (presented.kind) {
    case "none":
      return { refused: "certificate_missing" };
    case "foreign":
      return { refused: "certificate_untrusted" };
    case "other":
    case "canary":
    case "gateway":
    case "ingress":
      return { refused: "certificate_unusable" };
    case "node": {
      // Before the dates: the error of a revoked node must not suggest that expiry is its only problem.
      if (facts.revoked) return { refused: "identity_revoked" };
      if (facts.now < presented.notBefore.getTime()) return { refused: "certificate_not_yet_valid" };
      if (facts.now > presented.notAfter.getTime()) return { refused: "cert_expired" };
      return { nodeId: presented.nodeId, serial: presented.serial };
    }
  }
}

/** The id of the gateway process that a certificate was issued to; it also has the names of its listener. */
export function gatewayOf(subjectAltName: string | undefined): string | undefined {
  return gatewaySan.exec(subjectAltName ?? "")?.[1];
}

const gatewaySan =
  /^URI:holdfast:\/\/service\/gateway\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:, (?:DNS|IP Address):[A-Za-z0-9._:-]+)*$/;
const nodeSan = /^URI:holdfast:\/\/node\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;
const canarySan = /^URI:holdfast:\/\/canary\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;
const ingressSan = /^URI:holdfast:\/\/ingress\/([a-z0-9-]{1,63})$/;
