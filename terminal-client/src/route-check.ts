// Whether a gateway answers at the address that terminals are opened at. A server that answers there and is none, such as
// another listener or another site, counts as a missing route.

import { gatewayListeners, LISTENER_HEADER } from "@holdfast/contracts/headers";
import { TERMINAL_PATH } from "@holdfast/contracts/terminal/frames";
import type { RouteCheck } from "./environment.ts";

type Answer = { ok: boolean; status: number; headers: { get(name: string): string | null } };

/** Rejects with the error of `send`, when there was no answer that could be read. */
export async function askHealth(terminalUrl: string, send: (url: URL) => Promise<Answer>): Promise<RouteCheck> {
  const url = healthUrl(terminalUrl);
  const { ok, status, headers } = await send(url);
  if (headers.get(LISTENER_HEADER) !== gatewayListeners.public)
    return { reachable: false, detail: notTheGateway(url) };
  return ok ? { reachable: true } : { reachable: false, detail: `${url} answered ${status}.` };
}

/** A proxy may serve the gateway below a path of its own. */
export function healthUrl(terminalUrl: string): URL {
  const url = new URL(terminalUrl);
  url.protocol = url.protocol.replace(/^ws/, "http");
  url.pathname = url.pathname.endsWith(TERMINAL_PATH)
    ? `${url.pathname.slice(0, -TERMINAL_PATH.length)}/healthz`
    : "/healthz";
  return url;
}

export const notTheGateway = (url: URL) => `What answers at ${url} is not the terminal gateway.`;
