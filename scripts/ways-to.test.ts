import { describe, expect, it } from "vitest";
import { waysTo } from "./ways-to.ts";

const module = (source: string, ...imported: string[]) => ({
  source,
  dependencies: imported.map((text) => {
    const [resolved = "", kind = "local"] = text.split(" ");
    return { resolved, dependencyTypes: [kind] } as never;
  }),
});
const look = { from: /^agent[/]/, not: /[.]test[.]ts$/, to: /^zod$/ };

describe("ways to a module", () => {
  it("lead over others, and over cycles", () => {
    const modules = [module("agent/a.ts", "b.ts"), module("b.ts", "c.ts"), module("c.ts", "b.ts", "zod")];
    expect(waysTo(modules, look)).toEqual({ ways: [["agent/a.ts", "b.ts", "c.ts", "zod"]], visited: 3 });
  });

  it("do not lead over imports of types, from tests, or from elsewhere", () => {
    const modules = [
      module("agent/a.ts", "b.ts type-only", "zod type-only"),
      module("b.ts", "zod"),
      module("agent/a.test.ts", "zod"),
      module("web/c.ts", "zod"),
    ];
    expect(waysTo(modules, look)).toEqual({ ways: [], visited: 1 });
  });
});
