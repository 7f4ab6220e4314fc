// Whether a server that the CA vouches for is the api. Gateways have certificates of the same CA and choose
// the names in them: without a look at what they are, a gateway could stand in for whoever gives orders.

import { checkServerIdentity, type PeerCertificate } from "node:tls";

const ofService = /(^|, )URI:holdfast:\/\/service\//;

export function checkApiIdentity(host: string, certificate: PeerCertificate): Error | undefined {
  const wrong = checkServerIdentity(host, certificate);
  if (wrong || !ofService.test(certificate.subjectaltname ?? "")) return wrong;
  const message = "the certificate is that of a gateway, and this is not where gateways are";
  return Object.assign(new Error(message), { code: "ERR_TLS_CERT_NOT_OF_API" });
}
