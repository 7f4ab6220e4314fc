// The source of a function that a schema was given. It is copied into the check, so it must not use anything from
// outside of itself but what every JavaScript has.

import ts from "typescript";

const everywhere = new Set([
  ...[
    "undefined",
    "NaN",
    "Infinity",
    "Array",
    "BigInt",
    "Boolean",
    "Date",
    "Error",
    "JSON",
    "Map",
    "Math",
    "Number",
  ],
  ...[
    "Object",
    "RegExp",
    "Set",
    "String",
    "URL",
    "decodeURIComponent",
    "encodeURIComponent",
    "parseFloat",
    "parseInt",
  ],
]);

/** Or why it cannot be copied. */
export function closedSource(written: unknown): { source: string } | { problem: string } {
  if (typeof written !== "function") return { problem: "is not a function" };
  const source = written.toString();
  if (written.constructor.name !== "Function") return { problem: "is asynchronous or a generator" };
  if (/\{\s*\[native code\]\s*\}$/.test(source))
    return { problem: "is built in; wrap it in a function of its own" };
  const file = ts.createSourceFile("function.js", `(${source});`, ts.ScriptTarget.Latest, true, ts.ScriptKind.JS);
  const [statement, ...more] = file.statements;
  const expression =
    statement && ts.isExpressionStatement(statement) && ts.isParenthesizedExpression(statement.expression)
      ? statement.expression.expression
      : undefined;
  if (more.length > 0 || !expression || !(ts.isArrowFunction(expression) || ts.isFunctionExpression(expression)))
    return { problem: "is a method or a class; write it as an arrow function" };
  const outside = [...freeNames(expression)];
  if (outside.length > 0) return { problem: `uses ${outside.join(", ")} from outside of itself` };
  return { source };
}

/** Whatever is declared anywhere in the function counts as its own; the compiler sees what that lets through. */
function freeNames(root: ts.Node): Set<string> {
  const used = new Set<string>();
  const declared = new Set<string>();
  const visit = (node: ts.Node): void => {
    if (node.kind === ts.SyntaxKind.ThisKeyword) used.add("this");
    if (ts.isIdentifier(node)) (isDeclaration(node) ? declared : isName(node) ? undefined : used)?.add(node.text);
    ts.forEachChild(node, visit);
  };
  visit(root);
  return used.difference(declared).difference(everywhere);
}

function isDeclaration(node: ts.Identifier): boolean {
  const { parent } = node;
  const declares =
    ts.isParameter(parent) ||
    ts.isVariableDeclaration(parent) ||
    ts.isBindingElement(parent) ||
    ts.isFunctionExpression(parent) ||
    ts.isFunctionDeclaration(parent);
  return declares && parent.name === node;
}

/** After a dot, or before a colon: it names no variable. */
function isName(node: ts.Identifier): boolean {
  const { parent } = node;
  if (ts.isPropertyAccessExpression(parent)) return parent.name === node;
  if (ts.isBindingElement(parent)) return parent.propertyName === node;
  return ts.isPropertyAssignment(parent) && parent.name === node;
}
