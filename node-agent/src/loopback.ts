// Names and addresses that lead to this machine and no other.

/** As in a URL or a Host header: an IPv6 address may stand in brackets. */
export function isLoopbackName(name: string): boolean {
  return name === "localhost" || name === "[::1]" || name === "::1" || /^127(\.\d{1,3}){3}$/.test(name);
}
