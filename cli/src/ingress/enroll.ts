// Requests an ingress's certificates from the api. The keys are created here and stay here; the connection is not
// verified by TLS: nothing in the request is secret, and both sides prove that they know the ingress token.

import { randomBytes } from "node:crypto";
import { enrollIngress } from "@holdfast/contracts/internal/endpoints";
import { ApiUnreachable, connect } from "@holdfast/gateway/api-link/client";
import { certificateRequest, newPrivateKey, privateKeyPem } from "@holdfast/kit/certificate-request";
import { isSameProof, proofOfAnswer, proofOfRequest } from "@holdfast/service/service-proof";

export type IngressIdentity = {
  /** Key and chain in one PEM: nginx reads both from one file, so a renewal is never half done. */
  listener: string;
  ingress: string;
  /** Roots, PEM. */
  trust: string;
  /** The host names by which nodes reach it, from the api. */
  names: readonly string[];
  notBefore: number;
  notAfter: number;
};

export async function enroll(options: {
  apiUrl: string;
  token: string;
  name: string;
  signal: AbortSignal;
}): Promise<IngressIdentity> {
  const { token, name, signal } = options;
  const [own, listener] = [newPrivateKey(), newPrivateKey()];
  const notBefore = Date.now();
  const request = {
    name,
    csr: certificateRequest(own, name),
    listener_csr: certificateRequest(listener, name),
    nonce: randomBytes(24).toString("base64url"),
    sent_at: new Date(notBefore).toISOString(),
  };
  const unverified = connect(options.apiUrl, { rejectUnauthorized: false, keepAlive: false });
  try {
    const body = { ...request, mac: proofOfRequest(token, request) };
    const { mac, ...identity } = await unverified.ask(enrollIngress, { body, signal });
    if (!isSameProof(mac, proofOfAnswer(token, request.nonce, identity))) {
      throw new ApiUnreachable("the server at the api's internal address does not have the ingress token");
    }
    return {
      ingress: `${privateKeyPem(own)}${identity.certificate}`,
      listener: `${privateKeyPem(listener)}${identity.listener_certificate}`,
      trust: identity.trust_bundle.join(""),
      names: identity.names,
      notBefore,
      notAfter: Date.parse(identity.not_after),
    };
  } finally {
    unverified.close();
  }
}
