// Talks to the installation on this machine when it speaks TLS. Its certificate is made out to the
// public name and not to 127.0.0.1, so the name cannot be checked; instead, exactly the certificate
// that the listener was given is trusted: the first of the file, and not the authority after it,
// which issued certificates to others as well.

import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import type { ConnectionOptions, PeerCertificate } from "node:tls";

/** How a client of any protocol trusts that certificate and no other. */
export function pinnedTls(certificateFile: string) {
  const pinned = new X509Certificate(readFileSync(certificateFile));
  return {
    ca: pinned.toString(),
    allowPartialTrustChain: true,
    checkServerIdentity: (_host: string, shown: PeerCertificate) =>
      shown.raw.equals(pinned.raw) ? undefined : new Error("The server presented an unexpected certificate."),
  } satisfies ConnectionOptions;
}

export function pinnedFetch(certificateFile: string): typeof fetch {
  return (async (input: string, init: object) => {
    // Loaded only here: most commands speak plain HTTP to loopback, and should start quickly.
    const undici = await import("undici");
    const dispatcher = new undici.Agent({ connect: pinnedTls(certificateFile) });
    try {
      const response = await undici.fetch(input, { ...init, dispatcher });
      // Read to the end here, so that the connection can be closed with its agent.
      const body = response.status === 204 ? null : await response.arrayBuffer();
      return new Response(body, { status: response.status, headers: [...response.headers] });
    } finally {
      await dispatcher.destroy();
    }
  }) as typeof fetch;
}
