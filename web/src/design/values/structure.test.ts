import { describe, expect, it } from "vitest";
import { columnsOf, inUnit, isShort, nameInWords } from "./structure.ts";

describe("how a result is laid out", () => {
  it.each([
    [
      [
        { name: "eth0", up: true },
        { name: "lo", up: false },
      ],
      ["name", "up"],
    ],
    [[{ name: "eth0", addresses: ["::1"] }], ["name", "addresses"]],
    [[{ name: "eth0" }, { title: "lo" }], null],
    [[{ name: "eth0", inner: { deep: 1 } }], null],
    [[{ name: "eth0" }, 7], null],
    [["eth0"], null],
    [[Object.fromEntries([..."abcdefghi"].map((name) => [name, 1]))], null],
  ])("%j has the columns %j", (items, columns) => {
    expect(columnsOf(items)).toEqual(columns);
  });

  it("reads units from names", () => {
    expect(["free_bytes", "uptime_seconds", "load"].map(nameInWords)).toEqual(["free", "uptime", "load"]);
    expect(inUnit("free_bytes", 2048)).toBe("2 KiB");
    expect(inUnit("uptime_seconds", 75.4)).toBe("1 min 15 s");
    expect([inUnit("free_bytes", null), inUnit("skew_seconds", -3), inUnit("load", 2)]).toEqual([null, -3, 2]);
  });

  it("keeps in a line what fits one", () => {
    expect([1, "a", null, [1, 2], {}].map(isShort)).toEqual([true, true, true, true, true]);
    expect([{ a: 1 }, [{ a: 1 }]].map(isShort)).toEqual([false, false]);
  });
});
