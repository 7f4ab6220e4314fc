import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { anyCharacter } from "../../testkit/schemas/any-character.ts";
import { ago, harmless, jsonText, localTime, readable, span, table } from "./output.ts";

// biome-ignore lint/suspicious/noControlCharactersInRegex: what must not reach a terminal
const control = /[\u0000-\u001f\u007f-\u009f]/;
const columns = [
  { title: "name", of: (row: { name: string | null }) => row.name },
  { title: "state", of: () => "fine" },
];

describe("what people see", () => {
  it("holds no character that could steer the terminal, whatever a name holds", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: anyCharacter }), { maxLength: 5 }), (names) => {
        const lines = table(
          names.map((name) => ({ name })),
          columns,
        ).split("\n");
        expect(lines).toHaveLength(names.length + 1);
        expect(lines.join("")).not.toMatch(control);
      }),
    );
  });

  it("shows that something stood there", () => {
    expect(harmless("a\u001b[31mred\u009b2J\r\nb")).toBe("a�[31mred�2J�\nb");
    expect(harmless("Zoë 管理 ✓")).toBe("Zoë 管理 ✓");
  });

  it("is JSON with the same meaning and nothing to steer with, whatever the value", () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: "binary" }), (value) => {
        expect(jsonText(value)).not.toMatch(control);
        expect(jsonText(value)).toBe(jsonText(JSON.parse(jsonText(value))));
      }),
    );
    expect(JSON.parse(jsonText("\u009b\u007f\u001b"))).toBe("\u009b\u007f\u001b");
  });

  it("is a table with aligned columns, and a dash for nothing", () => {
    expect(table([{ name: "a long one" }, { name: null }], columns)).toBe(
      ["NAME        STATE", "a long one  fine", "–           fine"].join("\n"),
    );
  });

  it("is the local time to the second", () => {
    const at = new Date(2026, 0, 2, 3, 4, 5, 678);
    expect(localTime(at.toISOString())).toBe("2026-01-02 03:04:05");
    expect(localTime(null)).toBeNull();
  });
});

describe("a value of any shape", () => {
  it.for([
    [null, "–"],
    [true, "yes"],
    ["", "–"],
    [[], "none"],
    [["a", 1], "a, 1"],
    [{ home: "/home/anna", keys: 2, own_account: false }, "home: /home/anna\nkeys: 2\nown account: no"],
    [{ load: { one: 1 } }, "load:\n  one: 1"],
    [{ free_bytes: 16 * 1024 ** 3, uptime_seconds: 12_042 }, "free: 16 GiB\nuptime: 3 h"],
    [
      {
        disks: [
          { path: "/", free: 1 },
          { path: "/srv", free: 2 },
        ],
      },
      "disks:\n  - path: /\n    free: 1\n  - path: /srv\n    free: 2",
    ],
    [{ echo: "\u001b[2Jgone" }, "echo: �[2Jgone"],
  ] as const)("is readable: %j", ([value, text]) => {
    expect(readable(value)).toBe(text);
  });
});

describe("a span of time", () => {
  it.for([
    [0, "0 ms"],
    [999, "999 ms"],
    [2_440, "2.4 s"],
    [180_000, "3 min"],
    [5 * 3_600_000, "5 h"],
    [49 * 3_600_000, "2 days"],
  ] as const)("of %d ms is %s", ([ms, text]) => {
    expect(span(ms)).toBe(text);
  });

  it("never lies in the future", () => {
    expect(ago("2026-01-01T00:00:05Z", Date.parse("2026-01-01T00:00:00Z"))).toBe("0 ms ago");
    expect(ago("2026-01-01T14:00:00Z", Date.parse("2026-01-01T00:00:00Z"))).toBe(
      "14 h ahead of this computer's clock",
    );
    expect(ago(null)).toBe("never");
  });
});
