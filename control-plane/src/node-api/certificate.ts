// What a connection's client certificate says, and whether it counts at a given moment. Read once
// per connection, judged anew on every request: a certificate may end, and a node may be revoked,
// while a connection or a resumed session goes on.

import type { X509Certificate } from "node:crypto";
import type { ErrorCode } from "@holdfast/contracts/errors";
import type { Authority } from "../identity/authority.ts";
import { CLIENT_AUTH, nodeOf } from "../identity/certificates.ts";

export type ShownCertificate =
  | { kind: "none" }
  | { kind: "foreign" }
  /** Ours, but not made for a node. */
  | { kind: "other"; serial: string }
  | { kind: "node"; nodeId: string; serial: string; notBefore: Date; notAfter: Date };

/**
 * On a resumed session only the leaf is there; the CA that must have signed it comes from our own
 * keyring in any case, never from the connection.
 */
export function readShown(
  leaf: X509Certificate | undefined,
  authority: Pick<Authority, "hasIssued">,
): ShownCertificate {
  if (!leaf) return { kind: "none" };
  if (!authority.hasIssued(leaf)) return { kind: "foreign" };
  const serial = leaf.serialNumber.toLowerCase();
  const nodeId = nodeOf(leaf);
  // Node's `keyUsage` is the extended key usage.
  if (nodeId === undefined || !leaf.keyUsage?.includes(CLIENT_AUTH)) return { kind: "other", serial };
  return { kind: "node", nodeId, serial, notBefore: leaf.validFromDate, notAfter: leaf.validToDate };
}

export type Judgement = { nodeId: string; serial: string } | { refused: ErrorCode };

/** `revoked` tells whether the node's identity, or this certificate, was revoked. */
export function judge(shown: ShownCertificate, facts: { now: number; revoked: boolean }): Judgement {
  switch (shown.kind) {
    case "none":
      return { refused: "certificate_missing" };
    case "foreign":
      return { refused: "certificate_untrusted" };
    case "other":
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
