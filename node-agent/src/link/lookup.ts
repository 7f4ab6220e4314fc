// Finds the addresses of a host name: those that the node's profile gives it, for networks without a
// DNS of their own; any other name is the system's to resolve.

import { lookup as askSystem } from "node:dns";
import { isIP, type LookupFunction } from "node:net";

/** Asked at every new connection: the profile may have changed since the last. */
export function lookupBy(resolve: () => Record<string, string[]>): LookupFunction {
  return (host, options, done) => {
    const given = resolve();
    const addresses = Object.hasOwn(given, host) ? (given[host] ?? []) : [];
    const [first] = addresses;
    if (first === undefined) return askSystem(host, options, done);
    const found = addresses.map((address) => ({ address, family: isIP(address) }));
    // Not in the same turn: whoever follows the connection has not seen its socket yet.
    setImmediate(() => (options.all ? done(null, found) : done(null, first, isIP(first))));
  };
}
