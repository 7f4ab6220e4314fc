// Gets an ingress its certificates from the api. The keys are made here and stay here; the connection is not
// verified by TLS: nothing in the request is secret, and both sides prove that they know the ingress token.

import { randomBytes } from "node:crypto";
import { enrollIngress } from "@holdfast/contracts/service-endpoints";
import { ApiUnreachable, connect } from "@holdfast/gateway/api-link/client";
import { certificateRequest, newPrivateKey, privateKeyPem } from "@holdfast/kit/certificate-request";
import { isSameProof, proofOfAnswer, proofOfRequest } from "@holdfast/service/service-proof";

export type IngressIdentity = {
  /** Key and chain each, PEM: nginx takes both out of one file, and a renewal cannot be half done. */
  listener: string;
  ingress: string;
  /** Roots, PEM. */
  trust: string;
  /** What nodes reach it by, as the api says. */
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
      throw new ApiUnreachable("whoever answers at the api's internal address does not know the ingress token");
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
