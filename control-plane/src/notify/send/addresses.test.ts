import { describe, expect, it } from "vitest";
import { AddressRefused, allowanceOf, displayOf, parseWebhookUrl, resolveAllowed } from "./addresses.ts";

const nothing = allowanceOf([]);
const refusal = (text: string, addresses: string[], allowance = nothing) =>
  resolveAllowed(parseWebhookUrl(text), allowance, async () => addresses).then(
    () => "allowed",
    (error: Error) => error.name,
  );

describe("the address of a webhook", () => {
  it.for([
    ...["127.0.0.1", "127.255.255.254", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1"],
    ...[
      "169.254.169.254",
      "100.64.0.1",
      "100.127.255.255",
      "192.0.0.192",
      "198.18.0.1",
      "224.0.0.1",
      "255.255.255.255",
    ],
    ...["::1", "::", "fe80::1", "febf::1", "fc00::1", "fd12:3456::1", "ff02::1", "fec0::1"],
    ...["::ffff:127.0.0.1", "::ffff:a9fe:a9fe", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2001:0:1::"],
  ])("SEC-04 is not %s", async (address) => {
    expect(nothing.isPublic(address)).toBe(false);
    expect(await refusal("https://hooks.example.com/x", [address])).toBe("AddressRefused");
    const literal = address.includes(":") ? `[${address}]` : address;
    expect(await refusal(`https://${literal}/x`, [])).toBe("AddressRefused");
  });

  it.for(["1.1.1.1", "9.9.9.9", "100.63.255.255", "172.15.0.1", "172.32.0.1", "192.167.1.1", "2606:4700::1111"])(
    "SEC-04 may be %s, with TLS",
    async (address) => {
      expect(await refusal("https://hooks.example.com/x", [address])).toBe("allowed");
      expect(await refusal("http://hooks.example.com/x", [address])).toBe("AddressRefused");
    },
  );

  it("SEC-04 is refused if only one of the addresses of its name is private", async () => {
    expect(await refusal("https://hooks.example.com/x", ["1.1.1.1", "10.0.0.1"])).toBe("AddressRefused");
    expect(await refusal("https://hooks.example.com/x", [])).toBe("AddressRefused");
  });

  it("SEC-04 may be private where the operator of the installation lists it, and nowhere else", async () => {
    const allowance = allowanceOf(["10.0.0.0/8", "127.0.0.1", "fd00::/8"]);
    for (const [address, expected] of [
      ["10.9.9.9", "allowed"],
      ["127.0.0.1", "allowed"],
      ["::ffff:127.0.0.1", "allowed"],
      ["fd00::1", "allowed"],
      ["127.0.0.2", "AddressRefused"],
      ["169.254.169.254", "AddressRefused"],
      ["1.1.1.1", "AddressRefused"],
    ] as const)
      expect(await refusal("http://hooks.example.com/x", [address], allowance), address).toBe(expected);
  });

  it.for(["ftp://example.com", "file:///etc/passwd", "example.com", "https://user:secret@example.com/", ""])(
    "SEC-04 has a form that can be used: not %s",
    (text) => {
      expect(() => parseWebhookUrl(text)).toThrow(AddressRefused);
    },
  );

  it("SEC-03 is shown without what may be a secret in it", () => {
    expect(displayOf(new URL("https://hooks.example.com/services/T0/B0/secret"))).toBe(
      "https://hooks.example.com/…",
    );
    expect(displayOf(new URL("https://hooks.example.com/?token=secret"))).toBe("https://hooks.example.com/…");
    expect(displayOf(new URL("https://hooks.example.com:8443"))).toBe("https://hooks.example.com:8443");
  });
});
