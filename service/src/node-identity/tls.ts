// TLS of a node-facing listener: it requests a certificate from every client, rejects none during the
// handshake and leaves the decision to the layer above, so that an agent gets the reason of a rejection.

import { constants } from "node:crypto";
import type { TlsOptions } from "node:tls";

const SESSION_SECONDS = 4 * 60 * 60;
const HTTP = "http/1.1";

export const askForCertificate: TlsOptions = {
  requestCert: true,
  rejectUnauthorized: false,
  // Whoever offers protocols must offer ours, as Node decides by itself. But for that it copies the list for every
  // connection, nine bytes that keep 64 KB of Node's buffer pool: 26 KB for each of a thousand agents.
  ALPNCallback: ({ protocols }) => (protocols.includes(HTTP) ? HTTP : undefined),
};

export function listenerContext(options: {
  cert: string;
  key: string;
  /** Roots and issuing CAs, PEM. Only listed in the handshake: certificates are verified above TLS. */
  authorities: readonly string[];
  /** 48 bytes that replicas share, so that a session can be resumed at any of them. */
  ticketKeys: Buffer;
  /** Which kind of listener it is: no session is resumed at another kind. */
  purpose: string;
}): TlsOptions {
  return {
    cert: options.cert,
    key: options.key,
    ca: [...options.authorities],
    minVersion: "TLSv1.2",
    // A connection shows one certificate, once: it is read only the first time.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    sessionIdContext: options.purpose,
    sessionTimeout: SESSION_SECONDS,
    ticketKeys: options.ticketKeys,
  };
}
