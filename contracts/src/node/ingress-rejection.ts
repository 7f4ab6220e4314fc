// How a proxy in front of a node-facing listener rejects a client's certificate. Listeners of our own reject none below
// HTTP and respond with a code, so either of these is the proxy's own decision. Agents and the canary of the api recognize
// it by the same two rules.

/** Errors of the socket: the peer ended the handshake because of the certificate. */
export const rejectedInHandshake =
  /^ERR_SSL_(TLSV1|SSLV3|TLSV13|TLS)_ALERT_(UNKNOWN_CA|BAD_CERTIFICATE|CERTIFICATE_(UNKNOWN|REVOKED|REQUIRED)|UNSUPPORTED_CERTIFICATE|ACCESS_DENIED|NO_CERTIFICATE)$/;

/** nginx sends its own codes 495 and 496 as 400, with one of these sentences. */
const certificatePage = /\b(The SSL certificate error|No required SSL certificate was sent)\b/i;

export function isCertificatePage({ status, text }: { status: number; text: string }): boolean {
  return (status === 400 || status === 495 || status === 496) && certificatePage.test(text);
}
