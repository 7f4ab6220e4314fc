import { describe, expect, it } from "vitest";
import { isSamePlace } from "./network-facts.ts";

describe("the place of an address", () => {
  it.for<[string, string, boolean]>([
    ["10.0.0.1", "10.0.0.1", true],
    ["10.0.0.1", "10.0.0.2", false],
    ["fd00:1:2:3::1", "fd00:1:2:3:a:b:c:d", true],
    ["fd00:1:2:3::1", "fd00:1:2:4::1", false],
    ["fd00::1", "fd00:0:0:0:9::1", true],
    ["fd00::1", "fd00:0:0:1::1", false],
    ["FD00:01::1", "fd00:1::2", true],
    ["2001:db8::192.0.2.1", "2001:db8::1", true],
    ["10.0.0.1", "fd00::1", false],
  ])("DRIFT-15 %s and %s are the same: %s", ([one, other, same]) => {
    expect(isSamePlace(one, other)).toBe(same);
    expect(isSamePlace(other, one)).toBe(same);
  });
});
