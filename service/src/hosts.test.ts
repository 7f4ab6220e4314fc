import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { allowedHosts, isAllowedHost, isSameOrigin } from "./hosts.ts";

const loopback = allowedHosts({ bind: "127.0.0.1", publicUrl: undefined });
const published = allowedHosts({ bind: "0.0.0.0", publicUrl: "https://holdfast.example.com:8443" });

const port = fc.option(fc.integer({ min: 1, max: 65_535 }), { nil: undefined });
const withPort = (host: string, number: number | undefined) => (number === undefined ? host : `${host}:${number}`);

/** Each letter in upper or lower case, as chance has it. */
const anyCase = (text: string) =>
  fc
    .infiniteStream(fc.boolean())
    .map((upper) => [...text].map((letter) => (upper.next().value ? letter.toUpperCase() : letter)).join(""));

describe("allowed hosts", () => {
  it.for(["localhost", "127.0.0.1", "[::1]"])("SEC-03 answers to %s on any port, in any case", (host) => {
    fc.assert(
      fc.property(anyCase(host), port, (spelled, number) => {
        expect(isAllowedHost(withPort(spelled, number), loopback)).toBe(true);
      }),
    );
  });

  it("SEC-03 answers to the host of the public URL on any port, and to loopback beside it", () => {
    fc.assert(
      fc.property(anyCase("holdfast.example.com"), port, (spelled, number) => {
        expect(isAllowedHost(withPort(spelled, number), published)).toBe(true);
        expect(isAllowedHost(withPort(spelled, number), loopback)).toBe(false);
      }),
    );
    expect(isAllowedHost("localhost:3001", published)).toBe(true);
  });

  it("SEC-03 answers to a public URL that is an IPv6 address", () => {
    const hosts = allowedHosts({ bind: "::", publicUrl: "http://[2001:DB8::1]:3001" });
    expect(isAllowedHost("[2001:db8::1]:3001", hosts)).toBe(true);
    expect(isAllowedHost("[2001:db8::1]", hosts)).toBe(true);
    expect(isAllowedHost("[2001:db8::2]:3001", hosts)).toBe(false);
  });

  it.for([
    ["127.0.0.5", "127.0.0.5:3001"],
    ["10.0.0.7", "10.0.0.7"],
    ["2001:DB8:0::1", "[2001:db8::1]:3001"],
    ["::ffff:127.0.0.1", "[::ffff:7f00:1]:3001"],
  ] as const)("OPS-01 answers to the address it is bound to: %s", ([bind, header]) => {
    expect(isAllowedHost(header, allowedHosts({ bind, publicUrl: undefined }))).toBe(true);
    expect(isAllowedHost(header, loopback)).toBe(false);
  });

  it.for(["0.0.0.0", "::", "0:0::0", "localhost", "127.0.0.1", "::1", "fe80::1%eth0"])(
    "SEC-03 answers to no further name when bound to %s",
    (bind) => {
      expect(allowedHosts({ bind, publicUrl: undefined })).toEqual(loopback);
    },
  );

  it.for([
    "rebind.evil.example",
    "127.0.0.1.nip.io",
    "localhost.evil.example",
    "evil.example#localhost",
    "evil.example/localhost",
    "localhost@evil.example",
    "evil.example@localhost",
    "sub.holdfast.example.com",
    "holdfast.example.com.evil.example",
    "xholdfast.example.com",
    "localhost:3001:3002",
    "localhost.",
    " localhost",
    "127.1",
    "2130706433",
    "0.0.0.0",
    "::1",
    "[::1",
    ":3001",
    "",
  ])("SEC-03 refuses a name that somebody else could point here: %s", (host) => {
    expect(isAllowedHost(host, published)).toBe(false);
    expect(isAllowedHost(`${host}:3001`, published)).toBe(false);
  });

  it("SEC-03 refuses a request without a Host", () => {
    expect(isAllowedHost(undefined, published)).toBe(false);
  });

  it("SEC-03 refuses every other name there is", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.domain(),
          fc.ipV4(),
          fc.ipV6().map((ip) => `[${ip}]`),
          fc.string(),
        ),
        port,
        (host, n) => {
          fc.pre(!published.has(host.toLowerCase().replace(/:\d{1,5}$/, "")));
          expect(isAllowedHost(withPort(host, n), published)).toBe(false);
        },
      ),
    );
  });
});

describe("the page's origin", () => {
  it.for([
    ["http://localhost:3001", "localhost:3001", true],
    ["https://holdfast.example.com", "Holdfast.Example.com", true],
    ["http://[::1]:3001", "[::1]:3001", true],
    ["http://localhost:3002", "localhost:3001", false],
    ["http://evil.example", "localhost:3001", false],
    ["http://localhost:3001.evil.example", "localhost:3001", false],
    ["null", "localhost:3001", false],
    ["", "localhost:3001", false],
    ["http://localhost:3001", undefined, false],
  ] as const)("SEC-03 %s for a request to %s: %s", ([origin, host, same]) => {
    expect(isSameOrigin(origin, host)).toBe(same);
  });
});
