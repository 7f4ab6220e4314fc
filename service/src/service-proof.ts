// How the api and another process of the installation prove to each other that both know the service
// token, without sending it.

import { createHmac, timingSafeEqual } from "node:crypto";
import { canonicalJson } from "@holdfast/kit/canonical-json";

export function proofOfRequest(token: string, request: Record<string, unknown>): string {
  return macOf(token, canonicalJson(request));
}

/** With the nonce of the request, so that no earlier response can be replayed. */
export function proofOfAnswer(token: string, nonce: string, answer: Record<string, unknown>): string {
  return macOf(token, `${nonce}\n${canonicalJson(answer)}`);
}

export function isSameProof(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}

/** Part of every ingress certificate: after a change of the token, certificates of the old one are no longer accepted. */
export function markOfIngressToken(token: string): string {
  return macOf(token, "holdfast ingress certificate");
}

/** Of the text, base64url. */
function macOf(token: string, text: string): string {
  return createHmac("sha256", token).update(text).digest("base64url");
}
