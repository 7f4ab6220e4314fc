// Every entry of a catalogue has a place in the product that produces it. An entry that nothing can set is a promise to
// whoever reads the reference, a dashboard or an alarm rule; it comes with the code that sets it.

import { readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { errorCatalogue } from "@holdfast/contracts/errors";
import { commonTaskFailures, type FailureEntry } from "@holdfast/contracts/node/task-failures";
import { isReason, reasonCodes, reasons } from "@holdfast/contracts/reasons/catalogue";
import { hopDetails, hops, placeOf, terminalHops } from "@holdfast/contracts/reasons/hops";
import { diagnosticReasons, nodeReasons } from "@holdfast/contracts/reasons/node";
import { silenceReasons } from "@holdfast/contracts/reasons/node/silence";
import { terminalFailures } from "@holdfast/contracts/reasons/terminal";
import { loadAllContracts } from "@holdfast/tasks/registry";
import ts from "typescript";
import { describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const product = [
  "contracts",
  "kit",
  "service",
  "tasks",
  "workflows",
  "control-plane",
  "gateway",
  "node-agent",
  "terminal-client",
  "cli",
  "web",
];

function sourcesOf(folders: string[]): string[] {
  const extensions = [".ts", ".tsx", ".mjs"];
  return folders
    .flatMap((folder) => ts.sys.readDirectory(join(root, folder), extensions, ["**/node_modules", "**/dist"]))
    .filter((path) => !/\.(test|generated)\.tsx?$|\/test\//.test(relative(root, path)));
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

const typeFailures = [...(await loadAllContracts()).values()].flatMap(({ failures }) =>
  Object.entries<FailureEntry>(failures),
);
const catalogues = {
  reasons: Object.keys(diagnosticReasons),
  attention: Object.keys(silenceReasons),
  errors: Object.keys(errorCatalogue),
  terminals: Object.keys(terminalFailures),
  tasks: [...Object.keys(commonTaskFailures), ...typeFailures.map(([code]) => code)],
};

/** By file. A file without any of the names is not parsed, which takes most of the time. */
const named = new RegExp(`["'\`](${Object.values(catalogues).flat().join("|")})["'\`]`);
const madeIn = new Map(
  sourcesOf(product)
    .map((path): [string, string] => [relative(root, path), readFileSync(path, "utf8")])
    .filter(([, source]) => named.test(source))
    .map(([path, source]) => [path, textsMadeIn(source, path)]),
);

/** Those of the texts that no file makes, but for those that declare them: files, or folders that end in a slash. */
function neverMade(codes: string[], declaredIn: string[], folders = product): string[] {
  const paths = [...madeIn.keys()].filter(
    (path) =>
      !declaredIn.some((declaring) => path.startsWith(declaring)) &&
      folders.some((folder) => path.startsWith(`${folder}/`)),
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

  it("AGENT-06 has no attention item that the control plane does not raise", () => {
    expect(neverMade(catalogues.attention, [], ["control-plane"])).toEqual([]);
  });

  it("DRIFT-15 has no hop that nothing leads to", () => {
    const used = new Set<string | null>(Object.values(nodeReasons).map(({ at }) => at));
    expect(hopDetails.filter((detail) => !used.has(detail))).toEqual([]);
    expect(hops.filter((hop) => !hopDetails.some((detail) => placeOf(detail).hop === hop))).toEqual([]);
    const ofTerminals = new Set<string>(Object.values(terminalFailures).map(({ hop }) => hop));
    expect(terminalHops.filter((hop) => !ofTerminals.has(hop))).toEqual([]);
  });

  it("TERM-09 has no terminal failure that nothing reports", () => {
    expect(neverMade(catalogues.terminals, ["contracts/src/reasons/", "contracts/src/errors/"])).toEqual([]);
  });

  it("TASK-07 has no failure of a task that nothing reports", () => {
    const declaring = ["contracts/src/node/task-failures.ts", "control-plane/src/terminals/open-on-node.ts"];
    expect(neverMade(catalogues.tasks, declaring)).toEqual([]);
  });

  it("TASK-07 words a failure of a task that is also a reason once", () => {
    const shared = [...Object.entries<FailureEntry>(commonTaskFailures), ...typeFailures].flatMap(
      ([code, entry]) => (isReason(code) ? [{ code, entry, reason: reasons[code] }] : []),
    );
    expect(shared.map(({ code }) => code)).toEqual(expect.arrayContaining(["clock_skew", "terminal_pty_failed"]));
    for (const { code, entry, reason } of shared)
      expect(entry, code).toEqual({ message: reason.message, nextStep: reason.nextStep });
  });

  it("has no error code that no listener returns", () => {
    const servers = ["service", "control-plane", "gateway", "node-agent"];
    expect(neverMade(catalogues.errors, [], servers)).toEqual([]);
  });
});

/** Where several reasons are listed: the keys of an object or a type, an array, a union, the cases of a switch. */
function listsIn(source: string, name: string): string[] {
  const codes = new Set<string>(reasonCodes);
  const file = ts.createSourceFile(name, source, ts.ScriptTarget.Latest, true);
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    const named = new Set(namesIn(node).filter((text) => codes.has(text)));
    if (named.size > 1) found.push([...named].join(" "));
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

function namesIn(node: ts.Node): string[] {
  if (ts.isObjectLiteralExpression(node)) return node.properties.flatMap(({ name }) => name?.getText() ?? []);
  if (ts.isTypeLiteralNode(node)) return node.members.flatMap(({ name }) => name?.getText() ?? []);
  if (ts.isArrayLiteralExpression(node)) return node.elements.flatMap(textOf);
  if (ts.isUnionTypeNode(node))
    return node.types.flatMap((type) => (ts.isLiteralTypeNode(type) ? textOf(type.literal) : []));
  if (ts.isCaseBlock(node))
    return node.clauses.flatMap((clause) => (ts.isCaseClause(clause) ? textOf(clause.expression) : []));
  return [];
}

const textOf = (node: ts.Node): string[] => (ts.isStringLiteral(node) ? [node.text] : []);

/** A file without any of them is not parsed, which takes most of the time. */
const anyReason = new RegExp(`\\b(${reasonCodes.join("|")})\\b`);

/**
 * What raises reasons has to name them; so many lists are in each file. Nothing here says anything about a reason that
 * the catalogue could.
 */
const producers: Record<string, number> = {
  // Errors with the same names, and the errors that an endpoint can answer with.
  "contracts/src/errors/nodes.ts": 2,
  "contracts/src/errors/work.ts": 1,
  "contracts/src/endpoints/recovery.ts": 1,
  "contracts/src/endpoints/terminals.ts": 1,
  "contracts/src/internal/endpoints.ts": 1,
  // The failures that the task types report.
  "tasks/terminal.open/contract.ts": 1,
  "tasks/vm.console/contract.ts": 1,
  // Which failures a new identity would repair, and what a failed recovery becomes.
  "node-agent/src/recovery/decide.ts": 2,
  // Which refusals end the trial of a recovery bundle.
  "node-agent/src/bundle/decide.ts": 1,
  "node-agent/src/recovery/endings.ts": 2,
  // What a failed connection to the gateway becomes.
  "node-agent/src/terminals/failures.ts": 2,
  // What the metric counts.
  "control-plane/src/nodes/identity/late-certificates.ts": 1,
  // What reported codes mean as facts, and which of them can explain silence.
  "control-plane/src/drift/classify/reported.ts": 2,
  "control-plane/src/drift/classify/derive.ts": 1,
  // What is measured is told in numbers; and which signals are about the agent.
  "control-plane/src/drift/verdicts/message.ts": 1,
  "control-plane/src/drift/verdicts/layers.ts": 1,
  // The states of an agent that dashboards show, some of which have the name of a reason.
  "contracts/src/endpoints/nodes.ts": 1,
  "contracts/src/words/state-titles.ts": 1,
  "web/src/features/nodes/node-marks.ts": 1,
};

describe("the catalogue of reasons", () => {
  it("recognizes a list of reasons in every form", () => {
    const source = `
      const table = { disk_full: 1, clock_skew: 2 }; const set = new Set(["auth_failed", "cert_expired"]);
      type Union = "terminal_idle" | "terminal_closed"; type Counts = { agent_down: number; never_heard: number };
      switch (x) { case "link_slow": case "api_unreachable": return 1; }
      const one = { disk_full: 1, other: 2 }; const single = ["disk_full"]; call("disk_full", "clock_skew");`;
    expect(listsIn(source, "x.ts")).toHaveLength(5);
  });

  it("DRIFT-15 is the only place that lists reasons: a new one is an entry there, and whatever raises it", () => {
    const elsewhere = sourcesOf(product)
      .map((path): [string, string] => [relative(root, path), readFileSync(path, "utf8")])
      .filter(([path, source]) => !path.startsWith("contracts/src/reasons/") && anyReason.test(source))
      .map(([path, source]): [string, string[]] => [path, listsIn(source, path)])
      .filter(([, lists]) => lists.length > 0);
    const unexplained = elsewhere.filter(([path, lists]) => producers[path] !== lists.length);
    expect(unexplained).toEqual([]);
    expect(elsewhere.map(([path]) => path).sort()).toEqual(Object.keys(producers).sort());
  });
});
