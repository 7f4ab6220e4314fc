// Gets this process a certificate from the api. The connection is not verified by TLS: nothing in the
// request is secret, and both sides prove that they know the service token.

import { randomBytes } from "node:crypto";
import type { AgentOptions } from "node:https";
import { enrollService } from "@holdfast/contracts/internal/endpoints";
import { certificateRequest, newPrivateKey, privateKeyPem } from "@holdfast/kit/certificate-request";
import { isSameProof, proofOfAnswer, proofOfRequest } from "@holdfast/service/service-proof";
import { ApiUnreachable, connect } from "./client.ts";

export type ServiceIdentity = {
  key: string;
  /** Leaf and issuing CA, PEM. */
  certificate: string;
  notBefore: number;
  notAfter: number;
  /** Of the installation, PEM. */
  roots: readonly string[];
  /** Roots and issuing CAs, PEM: what may have signed a node's certificate. */
  authorities: readonly string[];
};

export type EnrollOptions = {
  apiUrl: string;
  token: string;
  instanceId: string;
  /** The names of the node-facing listener. */
  names: readonly string[];
  signal: AbortSignal;
};

export async function enroll({
  apiUrl,
  token,
  instanceId,
  names,
  signal,
}: EnrollOptions): Promise<ServiceIdentity> {
  const key = newPrivateKey();
  const nonce = randomBytes(24).toString("base64url");
  const notBefore = Date.now();
  const request = {
    service: "gateway" as const,
    instance_id: instanceId,
    csr: certificateRequest(key, "gateway"),
    names: names.slice(0, 64),
    nonce,
    sent_at: new Date(notBefore).toISOString(),
  };
  const unverified = connect(apiUrl, { rejectUnauthorized: false, keepAlive: false });
  try {
    const body = { ...request, mac: proofOfRequest(token, request) };
    const { mac, ...identity } = await unverified.ask(enrollService, { body, signal });
    if (!isSameProof(mac, proofOfAnswer(token, nonce, identity))) {
      throw new ApiUnreachable("whoever answers at the api's internal address does not know the service token");
    }
    return {
      key: privateKeyPem(key),
      certificate: identity.certificate,
      notBefore,
      notAfter: Date.parse(identity.not_after),
      roots: identity.trust_bundle,
      authorities: identity.authorities,
    };
  } finally {
    unverified.close();
  }
}

export function clientTls({ key, certificate, roots }: ServiceIdentity): AgentOptions {
  return { key, cert: certificate, ca: [...roots], minVersion: "TLSv1.2" };
}
