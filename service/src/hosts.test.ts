import type { IncomingMessage } from "node:http";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { allowedHosts, isAllowedHost, ownOriginCheck } from "./hosts.ts";

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
  type Asked = { origin?: string; host?: string; proto?: string; from?: string; tls?: boolean };
  const requestOf = ({ origin, host, proto, from = "192.0.2.1", tls = false }: Asked) =>
    ({
      headers: { origin, host, "x-forwarded-proto": proto },
      socket: { remoteAddress: from, encrypted: tls },
    }) as unknown as IncomingMessage;
  const bare = { publicUrl: undefined, trustedProxies: undefined };
  const proxied = { publicUrl: "https://fleet.example.com", trustedProxies: ["10.0.0.0/8", "::1"] };

  it.for<[Asked, boolean]>([
    [{ origin: "http://localhost:3001", host: "localhost:3001" }, true],
    [{ origin: "https://holdfast.example.com", host: "Holdfast.Example.com", tls: true }, true],
    [{ origin: "https://holdfast.example.com", host: "holdfast.example.com:443", tls: true }, true],
    [{ origin: "http://[::1]:3001", host: "[::1]:3001" }, true],
    [{ origin: "https://localhost:3001", host: "localhost:3001" }, false],
    [{ origin: "http://localhost:3001", host: "localhost:3001", tls: true }, false],
    [{ origin: "https://localhost:3001", host: "localhost:3001", proto: "https" }, false],
    [{ origin: "http://localhost:3002", host: "localhost:3001" }, false],
    [{ origin: "http://localhost:3001/", host: "localhost:3001" }, false],
    [{ origin: "http://evil.example", host: "localhost:3001" }, false],
    [{ origin: "http://localhost:3001.evil.example", host: "localhost:3001" }, false],
    [{ origin: "null", host: "localhost:3001" }, false],
    [{ origin: "", host: "localhost:3001" }, false],
    [{ origin: "http://localhost:3001" }, false],
    [{ host: "localhost:3001" }, false],
  ])("SEC-03 %o: %s", ([asked, own]) => {
    expect(ownOriginCheck(bare)(requestOf(asked))).toBe(own);
  });

  it.for<[Asked, boolean]>([
    [{ origin: "https://fleet.example.com", host: "api.internal:3001", from: "10.1.2.3" }, true],
    [{ origin: "https://fleet.example.com", host: "fleet.example.com", from: "10.1.2.3", proto: "https" }, true],
    [{ origin: "http://fleet.example.com", host: "fleet.example.com", from: "10.1.2.3", proto: "https" }, false],
    [{ origin: "http://fleet.example.com", host: "fleet.example.com", from: "10.1.2.3" }, false],
    [{ origin: "https://fleet.example.com:8443", host: "fleet.example.com:8443", from: "10.1.2.3" }, true],
    [{ origin: "https://localhost:8443", host: "localhost:8443", from: "::1", proto: "http, https" }, true],
    [{ origin: "https://localhost:8443", host: "localhost:8443", from: "::ffff:10.9.9.9", proto: "https" }, true],
    [{ origin: "https://localhost:8443", host: "localhost:8443", from: "192.0.2.9", proto: "https" }, false],
    [{ origin: "http://localhost:3001", host: "localhost:3001", from: "127.0.0.1" }, true],
  ])("SEC-03 behind a proxy %o: %s", ([asked, own]) => {
    expect(ownOriginCheck(proxied)(requestOf(asked))).toBe(own);
  });
});
