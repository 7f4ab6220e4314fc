// Every entry of a catalogue has a place in the product that produces it. An entry that nothing can set is a promise to
// whoever reads the reference, a dashboard or an alarm rule; it comes with the code that sets it.

import { readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { diagnosticReasons, hopDetails, hops, placeOf } from "@holdfast/contracts/diagnostics";
import { errorCatalogue } from "@holdfast/contracts/errors";
import { commonTaskFailures } from "@holdfast/contracts/task-failures";
import { terminalFailures, terminalHops } from "@holdfast/contracts/terminal-failures";
import { loadAllContracts } from "@holdfast/tasks/registry";
import ts from "typescript";
import { describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const product = ["contracts", "kit", "service", "tasks", "control-plane", "gateway", "node-agent", "cli", "web"];

function sourcesOf(folders: string[]): string[] {
  const extensions = [".ts", ".tsx", ".mjs"];
  return folders
    .flatMap((folder) => ts.sys.readDirectory(join(root, folder), extensions, ["**/node_modules", "**/dist"]))
    .filter((path) => !/\.test\.tsx?$|\/test\//.test(relative(root, path)));
}

/** Every text that stands where a value is made. What is only compared with, or only listed, is left out. */
function textsMadeIn(source: string, name: string): string[] {
  const file = ts.createSourceFile(name, source, ts.ScriptTarget.Latest, true);
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isStringLiteral(node) && isMade(node)) found.push(node.text);
    // SQL, where a state or a reason stands in quotes of its own.
    if (ts.isTemplateLiteralToken(node))
      found.push(...[...node.text.matchAll(/'([a-z_]+)'/g)].map(([, text = ""]) => text));
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

const comparisons = new Set([ts.SyntaxKind.EqualsEqualsEqualsToken, ts.SyntaxKind.ExclamationEqualsEqualsToken]);

function isMade(node: ts.Node): boolean {
  const { parent } = node;
  if (ts.isBinaryExpression(parent)) return !comparisons.has(parent.operatorToken.kind);
  if (ts.isPropertyAssignment(parent)) return parent.initializer === node;
  if (ts.isArrayLiteralExpression(parent)) return !isList(parent);
  return !ts.isCaseClause(parent) && !ts.isLiteralTypeNode(parent) && !ts.isElementAccessExpression(parent);
}

/** Of a set, of something that is looked through, or of a catalogue's own parts. */
function isList(list: ts.ArrayLiteralExpression): boolean {
  const { parent } = list;
  const isSet = ts.isNewExpression(parent) && parent.expression.getText() === "Set";
  const isLookedThrough = ts.isPropertyAccessExpression(parent) && ["includes", "some"].includes(parent.name.text);
  return isSet || isLookedThrough;
}

const ownFailures = [...(await loadAllContracts()).values()].flatMap(({ failures }) => Object.keys(failures));
const catalogues = {
  reasons: Object.keys(diagnosticReasons),
  errors: Object.keys(errorCatalogue),
  terminals: Object.keys(terminalFailures),
  tasks: [...Object.keys(commonTaskFailures), ...ownFailures],
  hops: [...hopDetails],
};

/** By file. A file without any of the names is not parsed, which takes most of the time. */
const named = new RegExp(`["'\`](${Object.values(catalogues).flat().join("|")})["'\`]`);
const madeIn = new Map(
  sourcesOf(product)
    .map((path): [string, string] => [relative(root, path), readFileSync(path, "utf8")])
    .filter(([, source]) => named.test(source))
    .map(([path, source]) => [path, textsMadeIn(source, path)]),
);

/** Those of the texts that no file makes, but for the one that declares them. */
function neverMade(codes: string[], declaredIn: string[], folders = product): string[] {
  const paths = [...madeIn.keys()].filter(
    (path) => !declaredIn.includes(path) && folders.some((folder) => path.startsWith(`${folder}/`)),
  );
  const made = new Set(paths.flatMap((path) => madeIn.get(path) ?? []));
  expect(made.size).toBeGreaterThan(100);
  return codes.filter((code) => !made.has(code));
}

describe("a catalogue", () => {
  it("is not satisfied by code that only compares, lists or names an entry", () => {
    const source = `
      type T = "a_type"; const keys = { "a_key": 1 }; const list = new Set(["a_set"]);
      if (x === "a_comparison" || ["a_list"].includes(x)) return "returned";
      switch (x) { case "a_case": throw new ApiError("thrown"); }
      const row = { reason: "in_a_table" }; sql\`SET failure = 'in_sql'\`;`;
    expect(textsMadeIn(source, "x.ts")).toEqual(["returned", "thrown", "in_a_table", "in_sql"]);
  });

  it("AGENT-01 has no diagnostic reason that no agent records", () => {
    const agent = ["node-agent", "tasks"];
    expect(neverMade(catalogues.reasons, [], agent)).toEqual([]);
  });

  it("DRIFT-15 has no hop that nothing leads to", () => {
    const used = new Set<string | null>(Object.values(diagnosticReasons).map(({ at }) => at));
    expect(neverMade(catalogues.hops, [], ["control-plane"]).filter((hop) => !used.has(hop))).toEqual([]);
    expect(hops.filter((hop) => !hopDetails.some((detail) => placeOf(detail).hop === hop))).toEqual([]);
    const ofTerminals = new Set<string>(Object.values(terminalFailures).map(({ hop }) => hop));
    expect(terminalHops.filter((hop) => !ofTerminals.has(hop))).toEqual([]);
  });

  it("TERM-09 has no terminal failure that nothing reports", () => {
    const web = "web/src/features/terminal/failures.ts";
    expect(neverMade(catalogues.terminals, ["contracts/src/terminal-failures.ts", web])).toEqual([]);
  });

  it("TASK-07 has no failure of a task that nothing reports", () => {
    const declaring = ["contracts/src/task-failures.ts", "control-plane/src/terminals/open-on-node.ts"];
    expect(neverMade(catalogues.tasks, declaring)).toEqual([]);
  });

  it("has no error code that no listener returns", () => {
    const servers = ["service", "control-plane", "gateway", "node-agent"];
    expect(neverMade(catalogues.errors, [], servers)).toEqual([]);
  });
});
