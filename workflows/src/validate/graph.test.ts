// Edges: what runs in circles, and what can never run.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Node, WorkflowDocument } from "../document/schema.ts";
import { checkGraph } from "./graph.ts";

const parallel = (...after: string[]): Node => ({ type: "parallel", ...(after.length > 0 ? { after } : {}) });
const condition = (...after: string[]): Node => ({ ...parallel(...after), type: "condition", if: "true" });
const join = (mode: "all" | "any", ...after: string[]): Node => ({ type: "join", mode, after });
const wait = (...after: string[]): Node => ({ ...parallel(...after), type: "wait", for: "1s" });

const found = (nodes: Record<string, Node>) =>
  checkGraph({ version: "1", nodes } satisfies WorkflowDocument).map(({ code, path }) => `${code} ${path[1]}`);

describe("FLOW-01 the graph of a workflow", () => {
  it("has no cycles", () => {
    expect(found({ a: parallel("a") })).toEqual(["cycle a"]);
    expect(found({ a: parallel(), b: parallel("a", "d"), c: parallel("b"), d: parallel("c") })).toEqual([
      "cycle b",
    ]);
  });

  it("names a cycle in the order in which its nodes would run", () => {
    const nodes = { a: parallel("c"), b: parallel("a"), c: parallel("b") };
    expect(checkGraph({ version: "1", nodes })[0]?.message).toBe(
      "These nodes wait for each other: a → b → c → a.",
    );
  });

  it.each<[string, Record<string, Node>, string[]]>([
    ["a join of both outcomes", { c: condition(), j: join("all", "c.true", "c.false") }, ["unreachable j"]],
    ["a join of success and failure", { w: wait(), j: join("all", "w", "w.failed") }, ["unreachable j"]],
    [
      "a join of what follows both outcomes",
      { c: condition(), t: wait("c.true"), f: wait("c.false"), j: join("all", "t", "f"), z: wait("j") },
      ["unreachable j"],
    ],
    ["the first of both outcomes", { c: condition(), j: join("any", "c.true", "c.false") }, []],
    [
      "a node after both outcomes",
      { c: condition(), t: wait("c.true"), f: wait("c.false"), m: wait("t", "f") },
      [],
    ],
    [
      "an outcome behind its opposite",
      { c: condition(), t: wait("c.true"), j: join("all", "t", "c.false") },
      ["unreachable j"],
    ],
    [
      "a merge that leaves one way open",
      { c: condition(), j: join("all", "c.true", "c.false"), t: wait("c.true"), m: wait("j", "t") },
      ["unreachable j"],
    ],
  ])("judges %s", (_, nodes, expected) => {
    expect(found(nodes)).toEqual(expected);
  });

  it("accepts any graph whose edges lead forwards, and finds the cycle when one leads back", () => {
    const graphs = fc.array(fc.array(fc.nat(), { maxLength: 3 }), { minLength: 2, maxLength: 12 });
    fc.assert(
      fc.property(graphs, (rows) => {
        const nodes = Object.fromEntries(
          rows.map((targets, index) => {
            const after = index === 0 ? [] : [...new Set(targets.map((target) => `n${target % index}`))];
            return [`n${index}`, parallel(...after)];
          }),
        );
        expect(found(nodes)).toEqual([]);
        const last = rows.length - 1;
        const chain = Object.fromEntries(
          Object.entries(nodes).map(([id, node], index) => [
            id,
            parallel(...new Set([...(node.after ?? []), ...(index > 0 ? [`n${index - 1}`] : [`n${last}`])])),
          ]),
        );
        expect(found(chain).map((one) => one.split(" ")[0])).toEqual(["cycle"]);
      }),
    );
  });
});
