// Resolves a host name: by the node's profile, for networks without private DNS, otherwise by the
// system's resolver.

import { lookup as askSystem } from "node:dns";
import { isIP, type LookupFunction } from "node:net";

/** Called for every new connection: the profile may have changed since the last. */
export function lookupBy(resolve: () => Record<string, string[]>): LookupFunction {
  return (host, options, done) => {
    const given = resolve();
    const addresses = Object.hasOwn(given, host) ? (given[host] ?? []) : [];
    const [first] = addresses;
    if (first === undefined) return askSystem(host, options, done);
    const found = addresses.map((address) => ({ address, family: isIP(address) }));
    // Not in the same turn: the caller has not seen the socket yet.
    setImmediate(() => (options.all ? done(null, found) : done(null, first, isIP(first))));
  };
}
