// Which Host headers a listener accepts. A page of a foreign site can point its own host name
// at 127.0.0.1 and send requests from the visitor's browser (DNS rebinding); its Host header gives
// it away. Ports are ignored: `ssh -L` changes them.

import type { IncomingMessage } from "node:http";
import { BlockList, isIPv6 } from "node:net";
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

/** The Origin of a request is the page that this listener serves: same scheme, host and port. */
export type OwnOriginCheck = (request: IncomingMessage) => boolean;

/**
 * A proxy may have changed the Host, so the public address is accepted as it stands. The scheme is the connection's,
 * or what a trusted proxy reports; under the name of an https public address it is https, whatever a proxy omits.
 */
export function ownOriginCheck({
  publicUrl,
  trustedProxies = [],
}: Pick<Exposure, "publicUrl" | "trustedProxies">): OwnOriginCheck {
  const proxies = new BlockList();
  for (const entry of trustedProxies) addProxy(proxies, entry);
  const secureName = publicUrl?.startsWith("https:") ? new URL(publicUrl).hostname : undefined;

  return (request) => {
    const { origin, host } = request.headers;
    if (origin === undefined || host === undefined) return false;
    if (origin === publicUrl) return true;
    const isSecureName = secureName !== undefined && isAllowedHost(host, new Set([secureName]));
    return isSameOrigin(origin, isSecureName ? "https" : schemeOf(request, proxies), host);
  };
}

function isSameOrigin(origin: string, scheme: string, host: string): boolean {
  const own = `${scheme}://${host}`;
  return URL.canParse(origin) && URL.canParse(own) && origin === new URL(own).origin;
}

function schemeOf({ socket, headers }: IncomingMessage, proxies: BlockList): string {
  const reported = headers["x-forwarded-proto"];
  if (typeof reported === "string" && isTrusted(socket.remoteAddress, proxies)) {
    return reported.split(",").at(-1)?.trim().toLowerCase() ?? "";
  }
  return "encrypted" in socket && socket.encrypted ? "https" : "http";
}

function isTrusted(address: string | undefined, proxies: BlockList): boolean {
  return address !== undefined && proxies.check(address, isIPv6(address) ? "ipv6" : "ipv4");
}

function addProxy(proxies: BlockList, entry: string): void {
  const [address = "", bits] = entry.split("/");
  const family = isIPv6(address) ? "ipv6" : "ipv4";
  if (bits === undefined) proxies.addAddress(address, family);
  else proxies.addSubnet(address, Number(bits), family);
}
