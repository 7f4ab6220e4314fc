// The ways by which nodes reach their listeners: each node-facing address of the environment profile, and each address that
// its name leads to, by the profile's own table or by DNS.

import { type LookupAddress, promises } from "node:dns";
import { isIP } from "node:net";
import type { EnvironmentProfile } from "@holdfast/contracts/node/protocol";
import { NODE_API } from "./decide.ts";

/** `address` is null where the name leads to none. */
export type KnownWay = { endpoint: string; url: string; address: string | null };

/** Endpoints of the profile at which nodes present their certificate. */
const nodeFacing = [NODE_API, "node_terminal"];
/** A name with more of them is not looked through. */
const MOST_ADDRESSES = 16;

type Lookup = (name: string) => Promise<readonly Pick<LookupAddress, "address">[]>;
const byDns: Lookup = (name) => promises.lookup(name, { all: true });

export async function waysOf(
  { endpoints, resolve }: Pick<EnvironmentProfile, "endpoints" | "resolve">,
  lookup: Lookup = byDns,
): Promise<KnownWay[]> {
  const known = nodeFacing.flatMap((endpoint) => {
    const url = endpoints[endpoint];
    return url?.startsWith("https://") ? [{ endpoint, url }] : [];
  });
  const ways = await Promise.all(
    known.map(async ({ endpoint, url }) => {
      const name = new URL(url).hostname.replace(/^\[|\]$/g, "");
      const addresses = isIP(name) === 0 ? (resolve[name] ?? (await addressesOf(name, lookup))) : [name];
      if (addresses.length === 0) return [{ endpoint, url, address: null }];
      return addresses.slice(0, MOST_ADDRESSES).map((address) => ({ endpoint, url, address }));
    }),
  );
  return ways.flat();
}

async function addressesOf(name: string, lookup: Lookup): Promise<string[]> {
  const found = await lookup(name).catch(() => []);
  return [...new Set(found.map(({ address }) => address))];
}
