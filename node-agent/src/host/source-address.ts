// The address of this host as its connections to the server have it.

import { isIPv4, isIPv6 } from "node:net";

/** Null: not an address of this host in a network. Loopback says nothing about where the host is. */
export function sourceAddress(local: string | undefined): string | null {
  const address = (local ?? "").replace(/%.*$/, "").replace(/^::ffff:(?=[\d.]+$)/i, "");
  if (isIPv4(address)) return address.startsWith("127.") ? null : address;
  return isIPv6(address) && address !== "::1" ? address.toLowerCase() : null;
}
