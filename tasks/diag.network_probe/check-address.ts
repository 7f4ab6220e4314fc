// Which addresses a probe may connect to. Judged after resolution, on the bytes of the address, so
// that no way of writing it and no record in somebody's DNS leads a node to its cloud's metadata
// service, its own loopback, or everybody on the link.

import { isIPv4, isIPv6 } from "node:net";

export type Refusal =
  | "not_an_address"
  | "unspecified"
  | "loopback"
  | "link_local"
  | "metadata"
  | "multicast"
  | "reserved";

type Range = readonly [cidr: string, refusal: Refusal];

/** The first that matches counts. Private ranges are not here: that is where servers live. */
export const refusedIPv4: readonly Range[] = [
  ["169.254.169.254/32", "metadata"],
  ["169.254.170.2/32", "metadata"], // containers on AWS
  ["168.63.129.16/32", "metadata"], // Azure
  ["100.100.100.200/32", "metadata"], // Alibaba
  ["192.0.0.192/32", "metadata"], // Oracle
  ["169.254.0.0/16", "link_local"],
  ["127.0.0.0/8", "loopback"],
  ["0.0.0.0/8", "unspecified"],
  ["224.0.0.0/4", "multicast"],
  ["240.0.0.0/4", "reserved"],
];

export const refusedIPv6: readonly Range[] = [
  ["fd00:ec2::254/128", "metadata"], // AWS
  ["fd20:ce::254/128", "metadata"], // Google
  ["::/128", "unspecified"],
  ["::1/128", "loopback"],
  ["fe80::/10", "link_local"],
  ["fec0::/10", "link_local"], // once site-local
  ["ff00::/8", "multicast"],
];

/** IPv6 addresses that stand for an IPv4 address: the range, and where in it the address begins. */
const carriersOfIPv4: readonly (readonly [cidr: string, at: number])[] = [
  ["::ffff:0:0/96", 12], // mapped
  ["::ffff:0:0:0/96", 12], // translated
  ["64:ff9b::/96", 12], // NAT64
  ["64:ff9b:1::/48", 12],
  ["2002::/16", 2], // 6to4
  ["::/96", 12], // compatible
];

export function checkAddress(address: string, { loopback }: { loopback: boolean }): Refusal | undefined {
  const refusal = judge(address);
  return refusal === "loopback" && loopback ? undefined : refusal;
}

/** Only a host that says loopback itself may lead there; a name that resolves to it may not. */
export function saysLoopback(host: string): boolean {
  return host === "localhost" || judge(host) === "loopback";
}

function judge(address: string): Refusal | undefined {
  // The part after % names an interface.
  const [bare = ""] = address.split("%");
  if (isIPv4(bare)) return find(refusedIPv4, bytesOfIPv4(bare));
  if (!isIPv6(bare)) return "not_an_address";
  const bytes = bytesOfIPv6(bare);
  const refusal = find(refusedIPv6, bytes);
  if (refusal) return refusal;
  const carrier = carriersOfIPv4.find(([cidr]) => isWithin(bytes, cidr));
  return carrier && find(refusedIPv4, bytes.slice(carrier[1], carrier[1] + 4));
}

function find(ranges: readonly Range[], bytes: number[]): Refusal | undefined {
  return ranges.find(([cidr]) => isWithin(bytes, cidr))?.[1];
}

function isWithin(bytes: number[], cidr: string): boolean {
  const [base = "", length] = cidr.split("/");
  const prefix = isIPv4(base) ? bytesOfIPv4(base) : bytesOfIPv6(base);
  return bitsOf(prefix).slice(0, Number(length)) === bitsOf(bytes).slice(0, Number(length));
}

function bitsOf(bytes: number[]): string {
  return bytes.map((byte) => byte.toString(2).padStart(8, "0")).join("");
}

function bytesOfIPv4(text: string): number[] {
  return text.split(".").map(Number);
}

function bytesOfIPv6(text: string): number[] {
  const [head = "", tail] = text.split("::");
  const [front, back] = [groupsOf(head), groupsOf(tail ?? "")];
  const between = tail === undefined ? 0 : 16 - front.length - back.length;
  return [...front, ...Array<number>(between).fill(0), ...back];
}

function groupsOf(text: string): number[] {
  if (text === "") return [];
  return text.split(":").flatMap((group) => {
    if (group.includes(".")) return bytesOfIPv4(group);
    const value = Number.parseInt(group, 16);
    return [value >> 8, value & 0xff];
  });
}
