// Whether the expressions of a workflow can be read, and use only what exists when they are evaluated.

import { ancestorsOf } from "../document/edges.ts";
import type { Finding, Path } from "../document/problem.ts";
import type { Node, WorkflowDocument } from "../document/schema.ts";
import { contextNames, parseExpression, type Used } from "../expressions/references.ts";
import { cutTemplate, templatesIn } from "../expressions/template.ts";

type Place = { path: Path; offset: number; readable: ReadonlySet<string> };

/** Each is parsed, and where it ends is found by parsing; evaluated, they would keep a worker busy for others. */
export const MOST_EXPRESSIONS = 1_000;

export function checkExpressions(document: WorkflowDocument): Finding[] {
  if (templatesIn(document).reduce((sum, { text }) => sum + text.split("${{").length - 1, 0) > MOST_EXPRESSIONS) {
    const message = `The document has more than ${MOST_EXPRESSIONS} expressions.`;
    return [{ code: "too_large", message, path: [] }];
  }
  const ofNodes = Object.entries(document.nodes).flatMap(([id, node]) => {
    const readable = ancestorsOf(document, id);
    const plain = node.type === "condition" ? [{ text: node.if, path: ["nodes", id, "if"] }] : [];
    return [
      ...plain.flatMap(({ text, path }) => checkExpression(document, text, { path, offset: 0, readable })),
      ...checkTemplates(document, templateOf(node), { path: ["nodes", id], readable }),
    ];
  });
  const all = new Set(Object.keys(document.nodes));
  const ofTriggers = (document.triggers ?? []).flatMap((trigger, index) =>
    trigger.type === "cron"
      ? checkTemplates(document, { input: trigger.input }, { path: ["triggers", index], readable: new Set() })
      : [],
  );
  return [
    ...ofTriggers,
    ...ofNodes,
    ...checkTemplates(document, { output: document.output }, { path: [], readable: all }),
  ];
}

/** The fields of a node that are templates. */
export function templateOf(node: Node): Record<string, unknown> {
  switch (node.type) {
    case "connector.action":
      return { input: node.input };
    case "agent.execute":
      return { script: node.script, env: node.env };
    case "http.request":
      return { url: node.url, headers: node.headers, body: node.body };
    case "wait":
      return { approval: node.approval };
    default:
      return {};
  }
}

function checkTemplates(
  document: WorkflowDocument,
  value: unknown,
  { path, readable }: { path: Path; readable: ReadonlySet<string> },
): Finding[] {
  return templatesIn(value, path).flatMap((found): Finding[] => {
    const { pieces, unclosed } = cutTemplate(found.text);
    const open: Finding[] =
      unclosed === undefined
        ? []
        : [{ code: "expression", message: "${{ has no matching }}.", path: found.path, offset: unclosed }];
    return [
      ...open,
      ...pieces.flatMap((piece) =>
        "expression" in piece
          ? checkExpression(document, piece.expression, { path: found.path, offset: piece.offset, readable })
          : [],
      ),
    ];
  });
}

function checkExpression(document: WorkflowDocument, expression: string, place: Place): Finding[] {
  const parsed = parseExpression(expression);
  const at = (offset: number) => ({ path: place.path, offset: place.offset + offset });
  if (!parsed.ok) return [{ code: "expression", message: `${parsed.message}.`, ...at(parsed.offset) }];
  return [...checkNames(parsed.used, at), ...checkNodes(document, parsed.used, { at, readable: place.readable })];
}

type At = (offset: number) => { path: Path; offset: number };

function checkNames({ unknown, forbidden }: Used, at: At): Finding[] {
  return [
    ...unknown.map(({ name, offset }): Finding => {
      const message = name.startsWith("nodes.")
        ? `${name} does not exist. A node has output and error.`
        : `${name} is unknown. Expressions can use ${contextNames.join(", ")}.`;
      return { code: "unknown_reference", message, ...at(offset) };
    }),
    ...forbidden.map(({ name, offset }): Finding => {
      const message = `$${name} cannot be used: a step that is repeated after a crash must get the same input.`;
      return { code: "forbidden_function", message, ...at(Math.max(0, offset)) };
    }),
  ];
}

function checkNodes(
  { nodes }: WorkflowDocument,
  used: Used,
  { at, readable }: { at: At; readable: ReadonlySet<string> },
): Finding[] {
  return used.nodes.flatMap(({ id, offset }): Finding[] => {
    if (!Object.hasOwn(nodes, id)) {
      return [{ code: "unknown_reference", message: `There is no node ${id}.`, ...at(offset) }];
    }
    if (readable.has(id)) return [];
    return [{ code: "not_before", message: `${id} does not run before this node.`, ...at(offset) }];
  });
}
