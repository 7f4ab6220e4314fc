import { describe, expect, it } from "vitest";
import { isReserved } from "./reserved-names.ts";

describe("a name for a tenant's user", () => {
  it.for([
    ["docker", true],
    ["wheel", true],
    ["systemd-journal", true],
    ["systemd-anything", true],
    ["alice", false],
    ["dockers", false],
    ["constructor", false],
  ] as const)("BM-01 %s is reserved: %s", ([name, reserved]) => {
    expect(isReserved(name)).toBe(reserved);
  });
});
