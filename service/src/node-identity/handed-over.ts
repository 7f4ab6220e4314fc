// Reads the certificate that an ingress forwards in a header. The ingress terminated the node's TLS, so it has
// verified that the node has the key; whether the certificate is accepted is decided like for any other.

import { X509Certificate } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { CERTIFICATE_HEADER } from "@holdfast/contracts/headers";

/** One certificate and nothing else: a chain, or a key beside it, does not have this form. */
const onePem = /^-----BEGIN CERTIFICATE-----\n([A-Za-z0-9+/=\n]+)-----END CERTIFICATE-----\n?$/;

export function carriesCertificate(request: Pick<IncomingMessage, "headers">): boolean {
  return request.headers[CERTIFICATE_HEADER] !== undefined;
}

/** Each value of the header as it was sent: Node joins those of one name. */
export function handedOver({ rawHeaders }: Pick<IncomingMessage, "rawHeaders">): string[] {
  return rawHeaders.filter(
    (_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === CERTIFICATE_HEADER,
  );
}

/** Undefined: it is not exactly one certificate, written as an ingress writes it. */
export function readHandedOver(value: string): X509Certificate | undefined {
  try {
    const pem = onePem.exec(decodeURIComponent(value));
    if (!pem?.[1]) return undefined;
    const bytes = Buffer.from(pem[1], "base64");
    const certificate = new X509Certificate(bytes);
    return certificate.raw.equals(bytes) ? certificate : undefined;
  } catch {
    return undefined;
  }
}
