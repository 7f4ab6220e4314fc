// The certificate that a listener presents: issued in memory by the installation's own CA, and replaced while the
// listener runs.

import type { Server } from "node:https";
import type { TlsOptions } from "node:tls";
import { listenerContext } from "@holdfast/service/node-identity/tls";
import type { Authority } from "./authority.ts";

export type ListenerCertificate = {
  /** Has the first certificate. */
  tls: TlsOptions;
  /**
   * Replaces the certificate when half of its lifetime is over, or when it is not valid yet because the clock was wrong
   * when it was issued. Open connections stay.
   */
  renewIfDue(server: Server, at: Date): Date | undefined;
};

export function makeListenerCertificate(options: {
  authority: Authority;
  names: readonly string[];
  /** 48 bytes that replicas share, so that a session can be resumed at any of them. */
  ticketKeys: Buffer;
  purpose: string;
  now: Date;
}): ListenerCertificate {
  const { authority, names, ticketKeys, purpose } = options;
  let issued = authority.issueToServer(names, options.now);
  const context = () =>
    listenerContext({
      cert: issued.cert,
      key: issued.key,
      authorities: authority.certificates,
      ticketKeys,
      purpose,
    });
  return {
    tls: context(),
    renewIfDue(server, at) {
      const half = (issued.notBefore.getTime() + issued.notAfter.getTime()) / 2;
      if (at >= issued.notBefore && at.getTime() < half) return undefined;
      issued = authority.issueToServer(names, at);
      server.setSecureContext(context());
      return issued.notAfter;
    },
  };
}
