// Checks that no source file of the product has more than 400 lines and no function more than 150: past that, it is two
// ideas. Tests, generated files and styles are left out. A run that sees too few files would pass whatever they hold, so
// that is a failure of its own.

import { readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const MOST_LINES_OF_A_FILE = 400;
const MOST_LINES_OF_A_FUNCTION = 150;
const FEWEST_FILES = 400;

/** What is too long in a source file, as `where: what`. Exported for its test. */
export function tooLong(path: string, source: string): string[] {
  const problems: string[] = [];
  const lines = source.split("\n").length - (source.endsWith("\n") ? 1 : 0);
  if (lines > MOST_LINES_OF_A_FILE) {
    problems.push(`${path}: ${lines} lines; a file has at most ${MOST_LINES_OF_A_FILE}`);
  }
  if (lines <= MOST_LINES_OF_A_FUNCTION) return problems;
  const file = ts.createSourceFile(path, source, ts.ScriptTarget.Latest, true, kindOf(path));
  const visit = (node: ts.Node): void => {
    if (isFunction(node)) {
      const first = file.getLineAndCharacterOfPosition(node.getStart(file)).line;
      const last = file.getLineAndCharacterOfPosition(node.end).line;
      const length = last - first + 1;
      if (length > MOST_LINES_OF_A_FUNCTION) {
        problems.push(
          `${path}:${first + 1}: ${nameOf(node)} has ${length} lines; a function has at most ${MOST_LINES_OF_A_FUNCTION}`,
        );
      }
    }
    node.forEachChild(visit);
  };
  visit(file);
  return problems;
}

type WithBody = ts.FunctionLikeDeclaration & { body: ts.Node };

const isFunction = (node: ts.Node): node is WithBody =>
  ts.isFunctionLike(node) && "body" in node && node.body !== undefined;

function nameOf(node: WithBody): string {
  if (node.name) return node.name.getText();
  return ts.isVariableDeclaration(node.parent) ? node.parent.name.getText() : "a function without a name";
}

const kindOf = (path: string) => (path.endsWith("x") ? ts.ScriptKind.TSX : ts.ScriptKind.TS);

function sources(root: string): string[] {
  const left = ["**/node_modules", "**/dist", "**/test", "**/testing", "testkit", "**/test-output", "**/.*"];
  return ts.sys
    .readDirectory(root, [".ts", ".tsx", ".mjs"], left)
    .map((path) => relative(root, path))
    .filter((path) => !/[.](test|generated)[.]tsx?$|[.]d[.]ts$/.test(path));
}

if (import.meta.main) {
  const root = fileURLToPath(new URL("..", import.meta.url));
  const paths = sources(root);
  const problems = paths.flatMap((path) => tooLong(path, readFileSync(join(root, path), "utf8")));
  for (const problem of problems) process.stdout.write(`${problem}\n`);
  process.stdout.write(`${paths.length} files, ${problems.length} too long\n`);
  if (paths.length < FEWEST_FILES)
    process.stdout.write(`Fewer than ${FEWEST_FILES} files seen: the check is blind.\n`);
  process.exitCode = problems.length > 0 || paths.length < FEWEST_FILES ? 1 : 0;
}
