// Which Host headers a listener answers to. A page of a foreign site can point its own host name
// at 127.0.0.1 and talk to us from the visitor's browser (DNS rebinding); the Host it sends gives
// it away. Ports do not matter: `ssh -L` changes them.

import type { Exposure } from "./settings.ts";

export function allowedHosts(exposure: Pick<Exposure, "bind" | "publicUrl">): ReadonlySet<string> {
  const hosts = new Set(["localhost", "127.0.0.1", "[::1]"]);
  const bound = hostOf(exposure.bind);
  if (bound !== undefined && !everywhere.has(bound)) hosts.add(bound);
  if (exposure.publicUrl) hosts.add(new URL(exposure.publicUrl).hostname);
  return hosts;
}

const everywhere: ReadonlySet<string> = new Set(["0.0.0.0", "[::]"]);

/** As a browser writes it; undefined for an address with a zone, which no browser can open. */
function hostOf(address: string): string | undefined {
  const url = `http://${address.includes(":") ? `[${address}]` : address}`;
  return URL.canParse(url) ? new URL(url).hostname : undefined;
}

export function isAllowedHost(header: string | undefined, allowed: ReadonlySet<string>): boolean {
  if (header === undefined) return false;
  const name = header.replace(/:\d{1,5}$/, "").toLowerCase();
  return allowed.has(name);
}

/** Whether a browser's Origin is the very page this request's host serves. */
export function isSameOrigin(origin: string, host: string | undefined): boolean {
  return host !== undefined && URL.canParse(origin) && new URL(origin).host === host.toLowerCase();
}
