import { describe, expect, it } from "vitest";
import { allEndpoints } from "../endpoints/all.ts";
import { openApiDocument } from "../public/openapi.ts";
import { nouns, stateGroups } from "./glossary.ts";

/** The values of every field of the API that holds a state. */
function statesInApi(): Map<string, string> {
  const found = new Map<string, string>();
  const visit = (value: unknown, path: string) => {
    if (typeof value !== "object" || value === null) return;
    for (const [key, child] of Object.entries(value)) {
      const values = (child as { enum?: unknown } | null)?.enum;
      if (["status", "state", "connection", "link", "result"].includes(key) && Array.isArray(values))
        found.set([...values].sort().join(" "), `${path}.${key}`);
      visit(child, `${path}.${key}`);
    }
  };
  const { paths } = openApiDocument(allEndpoints, { version: "0" }) as { paths: Record<string, unknown> };
  for (const [path, operations] of Object.entries(paths))
    for (const [method, operation] of Object.entries(operations as Record<string, { responses?: unknown }>))
      visit(operation.responses, `${method} ${path}`);
  return found;
}

describe("the glossary", () => {
  it("has every state that the API returns", () => {
    const known = new Set(stateGroups.map(({ titles }) => Object.keys(titles).sort().join(" ")));
    const found = statesInApi();
    expect(found.size).toBeGreaterThan(6);
    expect([...found].filter(([values]) => !known.has(values))).toEqual([]);
  });

  it("says each thing in one or two full sentences", () => {
    const states = stateGroups.flatMap(({ titles, derived = {} }) => Object.values({ ...titles, ...derived }));
    for (const { title } of states) expect(title).toMatch(/^[A-Z][a-z ]+$/);
    for (const sentence of [...Object.values(nouns), ...states.map(({ meaning }) => meaning)])
      expect(sentence).toMatch(/^[A-Z`].*\.$/);
  });

  it("lists nouns in order", () => {
    expect(Object.keys(nouns)).toEqual(Object.keys(nouns).toSorted());
  });

  it("has one title for one meaning of a group", () => {
    for (const { heading, titles, derived = {} } of stateGroups) {
      const all = Object.values({ ...titles, ...derived }).map(({ title }) => title);
      expect(new Set(all).size, heading).toBe(all.length);
    }
  });
});
