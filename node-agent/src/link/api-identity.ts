// Whether a server with a certificate of the CA is the api. Gateways have certificates of the same CA and choose
// the names in them: without this check, a gateway could impersonate the api.

import { checkServerIdentity, type PeerCertificate } from "node:tls";

const ofService = /(^|, )URI:holdfast:\/\/service\//;

export function checkApiIdentity(host: string, certificate: PeerCertificate): Error | undefined {
  const wrong = checkServerIdentity(host, certificate);
  if (wrong || !ofService.test(certificate.subjectaltname ?? "")) return wrong;
  const message = "the certificate belongs to a gateway, but this must be the api";
  return Object.assign(new Error(message), { code: "ERR_TLS_CERT_NOT_OF_API" });
}
