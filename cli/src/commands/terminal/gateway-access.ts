// How this command reaches the gateway: as any client would, and with the certificate that the
// installation on this machine was given, when it is that one's.

import WebSocket, { type ClientOptions } from "ws";
import { pinnedFetch, pinnedTls } from "../../client/pinned-fetch.ts";

export type GatewayAccess = {
  dial(url: string, options: ClientOptions & { protocols: string[] }): WebSocket;
  /** Whether a gateway is at that address at all. */
  answers(url: string): Promise<boolean>;
};

const ANSWER_WITHIN_MS = 3_000;

export function gatewayAccess(certificateFile: string | undefined): GatewayAccess {
  const tls = certificateFile === undefined ? {} : pinnedTls(certificateFile);
  const send = certificateFile === undefined ? fetch : pinnedFetch(certificateFile);
  return {
    dial: (url, { protocols, ...options }) =>
      new WebSocket(url, protocols, { ...options, ...tls, perMessageDeflate: false, followRedirects: false }),
    async answers(url) {
      const health = new URL("/healthz", url);
      health.protocol = health.protocol.replace("ws", "http");
      return send(health.href, { signal: AbortSignal.timeout(ANSWER_WITHIN_MS) }).then(
        (response) => response.ok,
        () => false,
      );
    },
  };
}
