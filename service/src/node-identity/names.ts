// What a node-facing listener is called: in its certificate, in the Host headers it answers to, and in
// the address that agents are given.

import { hostname, networkInterfaces } from "node:os";

export type ListenerPlace = { bind: string; url: string | undefined };

const everywhere = new Set(["0.0.0.0", "::"]);

/** Names and addresses, as they stand in a certificate. */
export function listenerNames({ bind, url }: ListenerPlace): string[] {
  const names = ["localhost", "127.0.0.1", "::1", hostname().toLowerCase()];
  if (url) names.unshift(new URL(url).hostname.replace(/^\[|\]$/g, ""));
  names.push(...(everywhere.has(bind) ? ownAddresses() : [bind]));
  // A certificate's names are ASCII, and an address with a zone means nothing to others.
  return [...new Set(names)].filter((name) => /^[a-z0-9._:-]+$/.test(name));
}

/** The same, as they stand in a Host header. */
export function hostHeadersOf(names: readonly string[]): ReadonlySet<string> {
  return new Set(names.map((name) => (name.includes(":") ? `[${name}]` : name)));
}

export function listenerUrl({ bind, url }: ListenerPlace, port: number): string {
  if (url) return url;
  const host = everywhere.has(bind) ? hostname().toLowerCase() : bind === "localhost" ? "127.0.0.1" : bind;
  return `https://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

function ownAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((all) => all?.map(({ address }) => address) ?? []);
}
