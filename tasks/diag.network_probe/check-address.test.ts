// Every range at its edges and everywhere between, and every way IPv6 has of carrying an IPv4 address.

import { BlockList } from "node:net";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { checkAddress, type Refusal, refusedIPv4, refusedIPv6, saysLoopback } from "./check-address.ts";

const closed = { loopback: false };

const table: [address: string, refusal: Refusal | undefined][] = [
  ["169.253.255.255", undefined],
  ["169.254.0.0", "link_local"],
  ["169.254.169.253", "link_local"],
  ["169.254.169.254", "metadata"],
  ["169.254.170.2", "metadata"],
  ["169.254.255.255", "link_local"],
  ["169.255.0.0", undefined],
  ["168.63.129.16", "metadata"],
  ["168.63.129.15", undefined],
  ["100.100.100.200", "metadata"],
  ["100.100.100.199", undefined],
  ["192.0.0.192", "metadata"],
  ["126.255.255.255", undefined],
  ["127.0.0.0", "loopback"],
  ["127.0.0.1", "loopback"],
  ["127.255.255.255", "loopback"],
  ["128.0.0.0", undefined],
  ["0.0.0.0", "unspecified"],
  ["0.255.255.255", "unspecified"],
  ["1.0.0.0", undefined],
  ["223.255.255.255", undefined],
  ["224.0.0.0", "multicast"],
  ["239.255.255.255", "multicast"],
  ["240.0.0.0", "reserved"],
  ["255.255.255.255", "reserved"],
  ["10.0.0.1", undefined],
  ["172.16.0.1", undefined],
  ["192.168.1.1", undefined],
  ["100.64.0.1", undefined],
  ["::", "unspecified"],
  ["::1", "loopback"],
  ["0:0:0:0:0:0:0:1", "loopback"],
  ["::2", "unspecified"],
  ["fe7f:ffff::1", undefined],
  ["fe80::", "link_local"],
  ["fe80::1%eth0", "link_local"],
  ["febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "link_local"],
  ["fec0::1", "link_local"],
  ["feff:ffff::", "link_local"],
  ["feff::", "link_local"],
  ["ff00::", "multicast"],
  ["ff02::1", "multicast"],
  ["ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "multicast"],
  ["fd00:ec2::254", "metadata"],
  ["fd00:0ec2:0:0:0:0:0:0254", "metadata"],
  ["fd00:ec2::253", undefined],
  ["fd20:ce::254", "metadata"],
  ["fd12:3456::1", undefined],
  ["2001:db8::1", undefined],
  ["::ffff:169.254.169.254", "metadata"],
  ["::ffff:a9fe:a9fe", "metadata"],
  ["0:0:0:0:0:ffff:a9fe:a9fe", "metadata"],
  ["::ffff:127.0.0.1", "loopback"],
  ["::ffff:0.0.0.0", "unspecified"],
  ["::ffff:10.0.0.1", undefined],
  ["::ffff:0:169.254.169.254", "metadata"],
  ["::169.254.169.254", "metadata"],
  ["::127.0.0.1", "loopback"],
  ["64:ff9b::169.254.169.254", "metadata"],
  ["64:ff9b::8.8.8.8", undefined],
  ["64:ff9b:1::a9fe:a9fe", "metadata"],
  ["2002:a9fe:a9fe::1", "metadata"],
  ["2002:7f00:1::", "loopback"],
  ["2002:808:808::1", undefined],
  ["", "not_an_address"],
  ["localhost", "not_an_address"],
  ["2852039166", "not_an_address"],
  ["0xa9fea9fe", "not_an_address"],
  ["0251.0376.0251.0376", "not_an_address"],
  ["169.254.43518", "not_an_address"],
  ["127.1", "not_an_address"],
  ["[::1]", "not_an_address"],
  ["10.0.0.1/8", "not_an_address"],
];

describe("an address to connect to", () => {
  it.for(table)("DIAG-02 %s is %s", ([address, refusal]) => {
    expect(checkAddress(address, closed)).toBe(refusal);
  });

  it("DIAG-02 may be loopback where the endpoint itself says so, and nothing else", () => {
    for (const [address, refusal] of table)
      expect(checkAddress(address, { loopback: true })).toBe(refusal === "loopback" ? undefined : refusal);
  });

  it("DIAG-02 agrees with Node's own idea of the ranges for any IPv4 address, however it is carried", () => {
    const list = new BlockList();
    for (const [cidr] of refusedIPv4) {
      const [base = "", length] = cidr.split("/");
      list.addSubnet(base, Number(length), "ipv4");
    }
    // Random addresses seldom meet the small ranges, so each address is also taken near one of them.
    const near = refusedIPv4.map(([cidr]) => (cidr.split("/")[0] ?? "").split(".").map(Number));
    const octet = fc.integer({ min: 0, max: 255 });
    const bytes = fc.oneof(
      fc.array(octet, { minLength: 4, maxLength: 4 }),
      fc.tuple(fc.constantFrom(...near), octet).map(([base, last]) => [...base.slice(0, 3), last]),
    );
    fc.assert(
      fc.property(bytes, (found) => {
        const plain = found.join(".");
        const refused = list.check(plain, "ipv4");
        const [a = 0, b = 0, c = 0, d = 0] = found;
        const pair = (high: number, low: number) => (high * 256 + low).toString(16);
        const groups = `${pair(a, b)}:${pair(c, d)}`;
        for (const address of [
          plain,
          `::ffff:${plain}`,
          `::ffff:${groups}`,
          `64:ff9b::${plain}`,
          `2002:${groups}::1`,
        ])
          expect(checkAddress(address, closed) !== undefined, address).toBe(refused);
      }),
      { numRuns: 2_000 },
    );
  });

  it("DIAG-02 agrees with Node's own idea of the ranges for any IPv6 address", () => {
    const list = new BlockList();
    for (const [cidr] of refusedIPv6) {
      const [base = "", length] = cidr.split("/");
      list.addSubnet(base, Number(length), "ipv6");
    }
    const group = fc.integer({ min: 0, max: 0xffff });
    const first = fc.oneof(fc.integer({ min: 0xfd00, max: 0xffff }), fc.integer({ min: 0x2003, max: 0xffff }));
    fc.assert(
      fc.property(first, fc.array(group, { minLength: 7, maxLength: 7 }), (head, rest) => {
        const address = [head, ...rest].map((value) => value.toString(16)).join(":");
        expect(checkAddress(address, closed) !== undefined, address).toBe(list.check(address, "ipv6"));
      }),
      { numRuns: 2_000 },
    );
  });

  it("DIAG-02 never throws", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.ipV4(), fc.ipV6(), fc.ipV4Extended()), (text) => {
        checkAddress(text, closed);
      }),
    );
    expect(saysLoopback("")).toBe(false);
  });

  it("DIAG-02 takes only loopback literals and localhost for loopback", () => {
    for (const host of ["localhost", "127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"])
      expect(saysLoopback(host), host).toBe(true);
    for (const host of ["localhost.example.com", "loopback", "10.0.0.1", "::", "0.0.0.0"])
      expect(saysLoopback(host), host).toBe(false);
  });
});
