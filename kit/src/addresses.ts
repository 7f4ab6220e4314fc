// Which addresses the product may connect to on behalf of somebody else. People choose URLs and hosts, and a process must not become
// their way into the network that it stands in: private, loopback, link-local and metadata addresses are refused, unless whoever
// runs the process allows them. A name is resolved once, and the connection goes to what was checked.

import { lookup } from "node:dns/promises";
import { BlockList, isIP, type LookupFunction } from "node:net";

export type Allowance = {
  isPublic(address: string): boolean;
  /** Listed by whoever runs the process. */
  isListed(address: string): boolean;
};

const notPublic: readonly [string, number][] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["224.0.0.0", 3],
  // Public by its number, and the way to the metadata of a machine in Azure.
  ["168.63.129.16", 32],
  // These carry an IPv4 address, which may be any of the above.
  ["::", 96],
  ["::ffff:0:0:0", 96],
  ["64:ff9b::", 96],
  ["64:ff9b:1::", 48],
  ["2002::", 16],
  ["2001::", 32],
  ["fc00::", 7],
  ["fe80::", 10],
  ["fec0::", 10],
  ["ff00::", 8],
];

const familyOf = (address: string) => (isIP(address) === 6 ? "ipv6" : "ipv4");

export function allowanceOf(listed: readonly string[]): Allowance {
  const refused = new BlockList();
  for (const [net, bits] of notPublic) refused.addSubnet(net, bits, familyOf(net));
  const allowed = new BlockList();
  for (const range of listed) {
    const [net = "", bits] = range.split("/");
    if (bits === undefined) allowed.addAddress(net, familyOf(net));
    else allowed.addSubnet(net, Number(bits), familyOf(net));
  }
  // BlockList reads an IPv4 address that is mapped to IPv6 as the IPv4 address.
  return {
    isPublic: (address) => isIP(address) !== 0 && !refused.check(address, familyOf(address)),
    isListed: (address) => isIP(address) !== 0 && allowed.check(address, familyOf(address)),
  };
}

/** A person's choice that cannot be used; the message is for them. */
export class AddressRefused extends Error {
  override name = "AddressRefused";
}

/** Of the form alone. */
export function parseOutsideUrl(text: string): URL {
  if (!URL.canParse(text)) throw new AddressRefused("This is not a URL.");
  const url = new URL(text);
  if (url.protocol !== "https:" && url.protocol !== "http:") throw new AddressRefused("Use an https:// URL.");
  if (url.username || url.password) throw new AddressRefused("The URL must not contain a user name or password.");
  return url;
}

export type Resolve = (host: string) => Promise<string[]>;

const resolveName: Resolve = async (host) => (await lookup(host, { all: true })).map(({ address }) => address);

/** `encrypted`: the connection uses TLS, which public addresses need; `advice`: how to have it. */
export type Destination = { host: string; encrypted: boolean; advice: string };

/** The addresses to connect to. Refused as a whole if one of them is not allowed. */
export async function resolveDestination(
  { host, encrypted, advice }: Destination,
  allowance: Allowance,
  resolve = resolveName,
): Promise<string[]> {
  const addresses = isIP(host) ? [host] : await resolve(host);
  if (addresses.length === 0) throw new AddressRefused(`${host} has no address.`);
  for (const address of addresses) {
    if (allowance.isListed(address)) continue;
    // Which address it is would tell people about names of the network that this process stands in.
    if (!allowance.isPublic(address)) throw new AddressRefused(`${host} is not a public address.`);
    if (!encrypted) throw new AddressRefused(advice);
  }
  return addresses;
}

export function resolveAllowed(url: URL, allowance: Allowance, resolve = resolveName): Promise<string[]> {
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const encrypted = url.protocol === "https:";
  return resolveDestination({ host, encrypted, advice: "Use https:// for a public address." }, allowance, resolve);
}

/** For a connection to the addresses that were checked, in place of another resolution of the name. */
export function always(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_host, { all: wantsAll }, callback) => {
    const [first] = all;
    if (wantsAll) callback(null, all);
    else callback(null, first?.address ?? "", first?.family);
  };
}
