// Edits of a workflow's text: the document becomes what was intended, and everything else stays as it was written.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parse as parseYaml, stringify } from "yaml";
import { emptyDocument } from "../empty-document.ts";
import { addNode, connect, disconnect, fieldsOf, removeNode, renameNode, setField } from "./edit.ts";
import { edgesOf, edgeText, outlineOf } from "./outline.ts";

const source = `# The nightly backup.
version: "1"   # of the schema

nodes:
  # Reads the list.
  fetch:
    type: http.request
    url: 'https://reef.example/list'   # behind the proxy

  check: { type: condition, after: [fetch], if: nodes.fetch.output.body.ok }  # inline
  # Runs on the host itself.
  backup:
    type: agent.execute
    after:
      - check.true   # only then
    script: |
      set -e
      echo "\${{ nodes.fetch.output.status }}"
    env:
      A: "1"
  tell: {type: connector.action,   after: [backup, backup.failed], connector: echo, action: echo}
# The end.
`;

const lines = (text: string) => text.split("\n");
/** Lines of the first that the second does not have. */
const lost = (before: string, after: string) => lines(before).filter((line) => !lines(after).includes(line));

describe("an edit", () => {
  it("DASH-06 of a field changes its line only", () => {
    const next = setField(source, ["nodes", "fetch", "url"], "https://reef.example/all");
    expect(lost(source, next)).toEqual(["    url: 'https://reef.example/list'   # behind the proxy"]);
    expect(next).toContain("    url: 'https://reef.example/all'   # behind the proxy\n");
  });

  it("DASH-06 adds a field, and removes it again without a trace", () => {
    const next = setField(source, ["nodes", "fetch", "timeout"], "5s");
    expect(lost(source, next)).toEqual([]);
    expect(fieldsOf(next, "fetch")).toMatchObject({ timeout: "5s" });
    expect(setField(next, ["nodes", "fetch", "timeout"], undefined)).toBe(source);
  });

  it("DASH-06 of a script keeps it a block", () => {
    const next = setField(source, ["nodes", "backup", "script"], "one\ntwo\n");
    expect(next).toContain("    script: |\n      one\n      two\n    env:\n");
    expect(next).toContain("- check.true   # only then");
  });

  it("DASH-06 adds a node behind the others, and the first one to an empty draft", () => {
    const next = addNode(source, "wait", { type: "wait", after: ["tell"], for: "5m" });
    expect(lost(source, next)).toEqual([]);
    expect(next).toContain("  wait:\n    type: wait\n    after: [ tell ]\n    for: 5m\n# The end.\n");
    const first = addNode(emptyDocument, "a", { type: "parallel" });
    expect(lost(emptyDocument, first)).toEqual(["nodes: {}"]);
    expect(first).toContain("nodes:\n  a:\n    type: parallel\n");
    expect(outlineOf(addNode("", "a", { type: "parallel" }))).toMatchObject([{ id: "a" }]);
  });

  it("DASH-06 removes a node with its comment and its edges", () => {
    const next = removeNode(source, "backup");
    expect(parseYaml(next).nodes).toEqual({
      fetch: parseYaml(source).nodes.fetch,
      check: parseYaml(source).nodes.check,
      tell: { type: "connector.action", connector: "echo", action: "echo" },
    });
    expect(next).not.toContain("Runs on the host itself");
    for (const kept of [
      "# The nightly backup.",
      "# of the schema",
      "# behind the proxy",
      "# inline",
      "# The end.",
    ])
      expect(next).toContain(kept);
  });

  it("DASH-06 draws an edge and takes it back", () => {
    const edge = { from: "check", port: "false" as const, to: "tell" };
    const next = connect(source, edge);
    expect(fieldsOf(next, "tell")?.["after"]).toEqual(["backup", "backup.failed", "check.false"]);
    expect(connect(next, edge)).toBe(next);
    expect(fieldsOf(disconnect(next, edge), "tell")?.["after"]).toEqual(["backup", "backup.failed"]);
    // Of the list itself, the space before a comment is not kept.
    const third = connect(source, { from: "fetch", port: "failed", to: "backup" });
    expect(lost(source, third)).toEqual(["      - check.true   # only then"]);
    expect(third).toContain("    after:\n      - check.true # only then\n      - fetch.failed\n    script: |\n");
  });

  it("DASH-06 renames a node where it stands, in edges and in expressions", () => {
    const next = renameNode(source, "fetch", "get-list");
    expect(next).toContain("  get-list:\n    type: http.request\n");
    expect(next).toContain("after: [ get-list ], if: nodes.`get-list`.output.body.ok");
    expect(next).toContain('echo "${{ nodes.`get-list`.output.status }}"');
    expect(renameNode(next, "get-list", "fetch")).toContain("if: nodes.fetch.output.body.ok");
    expect(outlineOf(next)?.map(({ id }) => id)).toEqual(["get-list", "check", "backup", "tell"]);
    expect(lines(next)).toHaveLength(lines(source).length);
  });

  it("leaves a text that is no YAML as it is", () => {
    expect(setField("nodes: [", ["nodes", "a"], 1)).toBe("nodes: [");
    expect(renameNode("nodes: [", "a", "b")).toBe("nodes: [");
  });
});

const id = fc.stringMatching(/^[a-z][a-z0-9_]{0,6}$/);
const text = fc.oneof(
  fc.string({ maxLength: 20 }),
  fc.constantFrom("a\nb\n", "x: y", "# no", "|", "", " a", "a\n\n"),
);
const node = fc.record({
  type: fc.constant("agent.execute"),
  script: text,
  env: fc.dictionary(id, text, { maxKeys: 2 }),
});
const documents = fc
  .dictionary(id, node, { minKeys: 1, maxKeys: 5, noNullPrototype: true })
  .map((nodes) => ({ version: "1", nodes }));
/** Each line of the first level below `nodes` gets a comment. */
const withComments = (yaml: string) =>
  yaml
    .split("\n")
    .map((line, index) => (/^ {2}[a-z]/.test(line) ? `  # about ${index}\n${line}` : line))
    .join("\n");
const comments = (yaml: string) => yaml.match(/# about \d+/g) ?? [];

describe("any document", () => {
  it("DASH-06 gets the field, and keeps its comments", () => {
    fc.assert(
      fc.property(documents, text, fc.nat(), (document, value, which) => {
        const yaml = withComments(stringify(document));
        const ids = Object.keys(document.nodes);
        const chosen = ids[which % ids.length] as string;
        for (const field of ["script", "title"]) {
          const next = setField(yaml, ["nodes", chosen, field], value);
          const wanted = structuredClone(document) as { nodes: Record<string, Record<string, unknown>> };
          (wanted.nodes[chosen] as Record<string, unknown>)[field] = value;
          expect(parseYaml(next)).toEqual(wanted);
          expect(comments(next)).toEqual(comments(yaml));
        }
      }),
    );
  });

  it("DASH-06 gets nodes and edges, loses them, and keeps the comments of the others", () => {
    fc.assert(
      fc.property(documents, id, fc.nat(), (document, added, which) => {
        const yaml = withComments(stringify(document));
        const ids = Object.keys(document.nodes);
        fc.pre(!ids.includes(added));
        const from = ids[which % ids.length] as string;
        const edge = { from, port: "failed" as const, to: added };
        const next = connect(addNode(yaml, added, { type: "parallel" }), edge);
        expect(parseYaml(next).nodes).toEqual({
          ...document.nodes,
          [added]: { type: "parallel", after: [edgeText(edge)] },
        });
        expect(edgesOf(outlineOf(next) ?? [])).toEqual([edge]);
        expect(comments(next)).toEqual(comments(yaml));
        expect(parseYaml(removeNode(next, added))).toEqual(document);
        const { [from]: _, ...others } = document.nodes;
        expect(parseYaml(removeNode(next, from)).nodes).toEqual({ ...others, [added]: { type: "parallel" } });
      }),
    );
  });

  it("DASH-06 has a renamed node in the same place", () => {
    fc.assert(
      fc.property(documents, id, fc.nat(), (document, to, which) => {
        const ids = Object.keys(document.nodes);
        fc.pre(!ids.includes(to));
        const from = ids[which % ids.length] as string;
        const yaml = connect(withComments(stringify(document)), { from, port: "failed", to: ids[0] as string });
        const next = renameNode(yaml, from, to);
        expect(outlineOf(next)?.map((one) => one.id)).toEqual(ids.map((one) => (one === from ? to : one)));
        expect(comments(next)).toEqual(comments(yaml));
        expect(edgesOf(outlineOf(next) ?? []).map((one) => one.from)).toEqual([to]);
      }),
    );
  });
});
