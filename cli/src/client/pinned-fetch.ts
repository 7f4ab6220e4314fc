// Talks to the installation on this machine when it speaks TLS. Its certificate is made out to the
// public name and not to 127.0.0.1, so the name cannot be checked; instead, exactly the certificate
// in the file that the listener was given is trusted, and nothing else.

import { readFileSync } from "node:fs";

export function pinnedFetch(certificateFile: string): typeof fetch {
  return (async (input: string, init: object) => {
    // Loaded only here: most commands speak plain HTTP to loopback, and should start quickly.
    const undici = await import("undici");
    const dispatcher = new undici.Agent({
      connect: {
        ca: readFileSync(certificateFile),
        allowPartialTrustChain: true,
        checkServerIdentity: () => undefined,
      },
    });
    try {
      const response = await undici.fetch(input, { ...init, dispatcher });
      // Read to the end here, so that the connection can be given up with its agent.
      const body = response.status === 204 ? null : await response.arrayBuffer();
      return new Response(body, { status: response.status, headers: [...response.headers] });
    } finally {
      await dispatcher.destroy();
    }
  }) as typeof fetch;
}
