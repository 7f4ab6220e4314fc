// How this command reaches the gateway: where the api says, as any client would. The one of the
// installation on this machine is reached as its api is: here, and by the certificate that it was given.

import { gatewayListeners, LISTENER_HEADER } from "@holdfast/contracts/headers";
import WebSocket, { type ClientOptions } from "ws";
import type { Server } from "../../client/connect.ts";
import { pinnedFetch, pinnedTls } from "../../client/pinned-fetch.ts";

export type GatewayAccess = {
  dial(url: string, options: ClientOptions & { protocols: string[] }): WebSocket;
  /** Whether a gateway is at that address at all. */
  answers(url: string, signal?: AbortSignal): Promise<boolean>;
};

const ANSWER_WITHIN_MS = 3_000;

export function gatewayAccess({ certificateFile, gatewayUrl }: Server): GatewayAccess {
  const tls = certificateFile === undefined ? {} : pinnedTls(certificateFile);
  const send = certificateFile === undefined ? fetch : pinnedFetch(certificateFile);
  const fromHere = (path: string, url: string) => new URL(path, gatewayUrl ?? url.replace(/^ws/, "http")).href;
  return {
    dial: (url, { protocols, ...options }) =>
      new WebSocket(fromHere(new URL(url).pathname, url).replace(/^http/, "ws"), protocols, {
        ...options,
        ...tls,
        perMessageDeflate: false,
        followRedirects: false,
      }),
    answers(url, unneeded) {
      const late = AbortSignal.timeout(ANSWER_WITHIN_MS);
      const signal = unneeded ? AbortSignal.any([late, unneeded]) : late;
      return send(fromHere("/healthz", url), { signal }).then(
        (response) => response.ok && response.headers.get(LISTENER_HEADER) === gatewayListeners.public,
        () => false,
      );
    },
  };
}
