// Reading documents: what is refused, and the place that is named.

import { describe, expect, it } from "vitest";
import { MOST_EXPRESSIONS } from "../validate/expressions.ts";
import type { Problem } from "./problem.ts";
import { readWorkflow } from "./read.ts";
import { MOST_DOCUMENT_BYTES } from "./schema.ts";
import { MOST_PROBLEMS } from "./source.ts";

const valid = `version: "1"
description: Fetches a page and opens an issue.
triggers:
  - type: cron
    schedule: "0 3 * * *"
    timezone: Europe/Zurich
    missed: skip
  - type: manual
nodes:
  fetch:
    type: http.request
    url: https://example.com/\${{ input.page }}
    retry: { attempts: 3, delay: 2s }
  check:
    type: condition
    after: [fetch]
    if: nodes.fetch.output.status = 200
  approve:
    type: wait
    after: [check.true]
    approval: { message: "Publish \${{ nodes.fetch.output.title }}?" }
    timeout: 1d
  publish:
    type: connector.action
    after: [approve]
    connector: echo
    action: echo
    input: { page: "\${{ nodes.fetch.output }}" }
    execution: { mode: node, selector: { group: alpha } }
  repair:
    type: agent.execute
    after: [fetch.failed]
    script: |
      echo "\${{ nodes.fetch.error }}"
`;

const problemsOf = (text: string): Problem[] => {
  const read = readWorkflow(text);
  return read.ok ? [] : read.problems;
};
/** As `line:column code`. */
const placesOf = (text: string) => problemsOf(text).map(({ line, column, code }) => `${line}:${column} ${code}`);
const document = (nodes: string, head = "") => `version: "1"\n${head}nodes:\n${nodes}`;

describe("FLOW-01 a document", () => {
  it("FLOW-01 may have its version as a number, as YAML invites to", () => {
    expect(readWorkflow("version: 1\nnodes:\n  a: { type: parallel }\n")).toMatchObject({
      ok: true,
      version: "1",
    });
  });

  it("is accepted as YAML and as JSON", () => {
    const read = readWorkflow(valid);
    expect(problemsOf(valid)).toEqual([]);
    if (!read.ok) return;
    expect(Object.keys(read.document.nodes)).toEqual(["fetch", "check", "approve", "publish", "repair"]);
    const asJson = readWorkflow(JSON.stringify(read.document, null, "\t"));
    expect(asJson).toEqual(read);
  });

  it.each([
    ["an unknown field", document("  a: { type: parallel, afterr: [b] }\n"), ["3:24 schema"]],
    ["an unknown type", document("  a:\n    type: nothing\n"), ["4:11 schema"]],
    ["a missing field", document("  a:\n    type: http.request\n"), ["3:3 schema"]],
    ["a wrong id", document("  A b: { type: parallel }\n"), ["3:3 schema"]],
    ["a wrong duration", document("  a:\n    type: wait\n    for: 5 minutes\n"), ["5:10 schema"]],
    ["two waits in one", document("  a: { type: wait, for: 5s, event: x }\n"), ["3:3 schema"]],
    ["a wait for nothing", document("  a: { type: wait }\n"), ["3:3 schema"]],
    [
      "two selectors",
      document(
        "  a: { type: agent.execute, script: x, execution: { mode: node, selector: { tag: a, group: b } } }\n",
      ),
      ["3:65 schema"],
    ],
    ["no nodes", 'version: "1"\nnodes: {}\n', ["2:1 schema"]],
    ["another version", 'version: "9"\nnodes:\n  a: { type: parallel }\n', ["1:10 schema"]],
    ["an unknown node", document("  a:\n    type: parallel\n    after:\n      - b\n"), ["6:9 unknown_node"]],
    [
      "a port of another type",
      document("  a: { type: parallel }\n  b: { type: parallel, after: [a.true] }\n"),
      ["4:32 wrong_port"],
    ],
    [
      "an edge twice",
      document("  a: { type: parallel }\n  b: { type: join, after: [a, a] }\n"),
      ["4:31 duplicate_edge"],
    ],
    [
      "a wrong schedule",
      document("  a: { type: parallel }\n", 'triggers: [{ type: cron, schedule: "61 * * * *" }]\n'),
      ["2:36 schedule"],
    ],
    [
      "a schedule without a future",
      document("  a: { type: parallel }\n", 'triggers: [{ type: cron, schedule: "0 0 30 2 *" }]\n'),
      ["2:36 schedule"],
    ],
    [
      "a wrong time zone",
      document("  a: { type: parallel }\n", 'triggers: [{ type: cron, schedule: "0 0 * * *", timezone: Mars }]\n'),
      ["2:59 timezone"],
    ],
    [
      "two webhooks",
      document("  a: { type: parallel }\n", "triggers: [{ type: webhook }, { type: webhook }]\n"),
      ["2:31 several_webhooks"],
    ],
    [
      "a script in the worker",
      document("  a: { type: agent.execute, script: x, execution: { mode: cloud } }\n"),
      ["3:40 execution_mode"],
    ],
    [
      "a request on an agent",
      document("  a: { type: http.request, url: x, execution: { mode: node } }\n"),
      ["3:36 execution_mode"],
    ],
    [
      "a selector in the worker",
      document(
        "  a: { type: connector.action, connector: echo, action: echo, execution: { mode: cloud, selector: { tag: z } } }\n",
      ),
      ["3:63 execution_mode"],
    ],
    ["a duplicate key", document("  a: { type: parallel }\n  a: { type: parallel }\n"), ["4:3 syntax"]],
    [
      "a key that objects cannot have",
      document("  a: { type: http.request, url: x, headers: { __proto__: a } }\n"),
      ["3:47 syntax"],
    ],
    ["broken YAML", "version: [\n", ["2:1 syntax"]],
  ])("is refused with the place of %s", (_, text, places) => {
    expect(placesOf(text)).toEqual(places);
  });

  it.each([
    ["plain", "    if: inputs.a = 1\n", "5:9"],
    ["quoted", '    if: "true and inputs.a"\n', "5:19"],
    ["folded over lines", "    if: |\n      true and\n      inputs.a\n", "7:7"],
  ])("names the place within an expression that is %s", (_, line, place) => {
    expect(placesOf(document(`  a:\n    type: condition\n${line}`))).toEqual([`${place} unknown_reference`]);
  });

  it("says what is wrong in words", () => {
    expect(problemsOf(document("  a: { type: http.request }\n"))[0]?.message).toBe("url is required.");
    expect(problemsOf(document("  a: { type: parallel, x: 1 }\n"))[0]?.message).toBe("x is not a field here.");
  });

  it("is refused when it is too large, or its aliases stand for too much", () => {
    expect(placesOf(`# ${"x".repeat(MOST_DOCUMENT_BYTES)}\n${valid}`)).toEqual(["1:1 too_large"]);
    const levels = [
      "a: &a [1, 1, 1]",
      ...["b", "c", "d", "e"].map((name, index) => {
        const before = "abcd"[index];
        return `${name}: &${name} [*${before}, *${before}, *${before}, *${before}, *${before}, *${before}]`;
      }),
    ];
    expect(placesOf(levels.join("\n"))).toEqual(["1:1 syntax"]);
  });

  it("FLOW-01 takes no longer for each key, problem or expression when there are many", () => {
    const keys = (count: number) => Array.from({ length: count }, (_, index) => `k${index}: 1\n`).join("");
    expect(problemsOf(keys(25_000))).toHaveLength(MOST_PROBLEMS);
    expect(placesOf(`${keys(25_000)}k7: 2\n`)).toEqual(["25001:1 syntax"]);
    expect(placesOf("a: { b: 1, c: 2, b: 3 }\n")).toEqual(["1:18 syntax"]);
    expect(problemsOf("- !x\n".repeat(30_000))).toHaveLength(MOST_PROBLEMS);
    const step = (input: string) =>
      document(`  a: { type: connector.action, connector: echo, action: echo, input: "${input}" }\n`);
    expect(placesOf(step("${{ ( }}".repeat(20_000)))).toEqual(["1:1 too_large"]);
    expect(problemsOf(step("${{ 1 }}".repeat(MOST_EXPRESSIONS)))).toEqual([]);
  });

  it("reports every problem at once, in the order of the text", () => {
    const text = document("  a: { type: parallel, after: [x, y] }\n  b: { type: condition, if: foo }\n");
    expect(placesOf(text)).toEqual(["3:32 unknown_node", "3:35 unknown_node", "4:29 unknown_reference"]);
  });
});
