import { describe, expect, it } from "vitest";
import { sourceAddress } from "./source-address.ts";

describe("the address of a host", () => {
  it.for<[string | undefined, string | null]>([
    ["10.1.2.3", "10.1.2.3"],
    ["::ffff:10.1.2.3", "10.1.2.3"],
    ["::FFFF:10.1.2.3", "10.1.2.3"],
    ["fd00::A", "fd00::a"],
    ["fe80::1%eth0", "fe80::1"],
    ["127.0.0.1", null],
    ["127.9.0.1", null],
    ["::ffff:127.0.0.1", null],
    ["::1", null],
    ["", null],
    ["elsewhere", null],
    [undefined, null],
  ])("AGENT-06 of a connection from %s is %s", ([local, address]) => {
    expect(sourceAddress(local)).toBe(address);
  });
});
