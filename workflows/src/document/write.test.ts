// What is written can be read again, and differs from nothing.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { diffWorkflows } from "./diff.ts";
import { readWorkflow } from "./read.ts";
import type { Node, WorkflowDocument } from "./schema.ts";
import { documentFormats, writeWorkflow } from "./write.ts";

const wellFormed = (text: string) =>
  text.isWellFormed() && !text.includes("\0") && !text.includes("${{") && !text.includes("__proto__");
const text = fc.string({ unit: "grapheme", minLength: 1, maxLength: 40 }).filter(wellFormed);
type Json = Extract<Node, { type: "http.request" }>["body"];
const json = fc
  .jsonValue({ maxDepth: 3, stringUnit: "grapheme" })
  .filter((value) => wellFormed(JSON.stringify(value)))
  .map((value) => value as Json);
const duration = fc.constantFrom("1s", "500ms", "3m", "2h", "7d");

const node: fc.Arbitrary<Node> = fc.oneof(
  fc.record(
    {
      type: fc.constant("connector.action" as const),
      ...{
        connector: fc.constant("echo"),
        action: fc.constant("echo"),
        input: json,
        title: text,
        timeout: duration,
      },
      retry: fc.record(
        { attempts: fc.integer({ min: 1, max: 20 }), delay: duration },
        { requiredKeys: ["attempts"] },
      ),
      effect: fc.constantFrom("at-most-once" as const, "idempotent" as const),
      execution: fc.record({ mode: fc.constant("node" as const), selector: fc.record({ tag: text }) }),
    },
    { requiredKeys: ["type", "connector", "action"] },
  ),
  fc.record(
    { type: fc.constant("http.request" as const), url: text, body: json, headers: fc.dictionary(text, text) },
    { requiredKeys: ["type", "url"] },
  ),
  fc.record({ type: fc.constant("agent.execute" as const), script: text, env: fc.dictionary(text, text) }),
  fc.record({ type: fc.constant("wait" as const), for: duration }),
  fc.record({
    type: fc.constant("condition" as const),
    if: fc.constantFrom("true", "input.a = 1", "$count(input) > 2"),
  }),
);

/** Each node after some of those before it. */
const documents: fc.Arbitrary<WorkflowDocument> = fc
  .array(fc.tuple(node, fc.array(fc.nat(), { maxLength: 3 })), { minLength: 1, maxLength: 8 })
  .map((rows) => {
    const entries = rows.map(([one, targets], index): [string, Node] => {
      const sources = index === 0 ? [] : [...new Set(targets.map((target) => target % index))];
      const after = sources.map((source) =>
        rows[source]?.[0].type === "condition" ? `n${source}.true` : `n${source}`,
      );
      return [`n${index}`, after.length > 0 ? { ...one, after } : one];
    });
    return { version: "1" as const, nodes: Object.fromEntries(entries) };
  });

describe("FLOW-01 documents", () => {
  it.each(documentFormats)("are the same after writing and reading %s", (format) => {
    fc.assert(
      fc.property(documents, (document) => {
        const written = writeWorkflow(document, format);
        const read = readWorkflow(written);
        expect(read).toMatchObject({ ok: true });
        if (!read.ok) return;
        expect(JSON.stringify(read.document.nodes)).toBe(
          JSON.stringify(JSON.parse(JSON.stringify(read.document.nodes))),
        );
        expect(diffWorkflows(JSON.parse(JSON.stringify(document)), read.document)).toEqual([]);
        expect(writeWorkflow(read.document, format)).toBe(written);
      }),
    );
  });

  it("do not differ by the sign of a zero, which JSON does not write", () => {
    const waiting = (input: number): WorkflowDocument => ({
      version: "1",
      nodes: { a: { type: "connector.action", connector: "http", action: "request", input: { at: [input] } } },
    });
    expect(diffWorkflows(waiting(0), waiting(-0))).toEqual([]);
    expect(diffWorkflows(waiting(0), waiting(1))).toHaveLength(1);
  });

  it("differ by what was added, removed and changed", () => {
    const before: WorkflowDocument = {
      version: "1",
      nodes: { a: { type: "wait", for: "1s" }, b: { type: "parallel", after: ["a"] } },
    };
    const after: WorkflowDocument = {
      version: "1",
      description: "x",
      nodes: { c: { type: "parallel" }, a: { for: "2s", type: "wait" } },
    };
    expect(diffWorkflows(before, after)).toEqual([
      { kind: "added", path: "description", after: "x" },
      { kind: "changed", path: "nodes.a.for", before: "1s", after: "2s" },
      { kind: "removed", path: "nodes.b", before: { type: "parallel", after: ["a"] } },
      { kind: "added", path: "nodes.c", after: { type: "parallel" } },
    ]);
  });

  it("differ from the other by exactly the changes, in both directions", () => {
    fc.assert(
      fc.property(documents, documents, (a, b) => {
        const there = diffWorkflows(a, b);
        const back = diffWorkflows(b, a);
        expect(back.map(({ path }) => path)).toEqual(there.map(({ path }) => path));
        expect(there.length === 0).toBe(
          JSON.stringify(a) === JSON.stringify(b) || diffWorkflows(b, a).length === 0,
        );
      }),
    );
  });
});
