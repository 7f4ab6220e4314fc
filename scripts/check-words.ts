// Keeps banned words out of the repository: docs, comments, printed text, identifiers and file names. The lists are in
// scripts/words/banned.ts. A run that sees few files passes everything, so that is a failure of its own.

import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bannedNames, bannedPhrases, exempt, pending } from "./words/banned.ts";
import { type Finding, findNames, findPhrases } from "./words/find.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const FEWEST_FILES = 700;
const skippedFolders = new Set(["node_modules", "dist", "test-output", ".git"]);
const text = /\.(ts|tsx|mjs|md|sql|css|html|json|yaml|conf|sh|service)$|(^|\/)[^./]+$/;

const paths = globSync("**/*", {
  cwd: root,
  withFileTypes: true,
  exclude: (entry) => skippedFolders.has(entry.name),
})
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath, entry.name).slice(root.length))
  .filter((path) => text.test(path) && !exempt.some((pattern) => pattern.test(path)))
  .sort();

const contents = new Map(paths.map((path) => [path, readFileSync(join(root, path), "utf8")]));

/** Without those of folders that are not rewritten yet, and with a complaint about folders that are. */
function judge(find: (path: string, text: string) => Finding[], pending: string[]) {
  const findings = [...contents].flatMap(([path, content]) => find(path, content));
  return {
    reported: findings.filter(({ path }) => !pending.some((prefix) => path.startsWith(prefix))),
    cleaned: pending.filter((prefix) => !findings.some(({ path }) => path.startsWith(prefix))),
  };
}

const phrases = judge((path, content) => findPhrases(path, content, bannedPhrases), pending.phrases);
const names = judge((path, content) => findNames(path, content, bannedNames), pending.names);
const reported = [...phrases.reported, ...names.reported];
const cleaned = [...phrases.cleaned, ...names.cleaned];

for (const { path, line, found, instead } of reported)
  process.stdout.write(`${path}:${line}: “${found}” → ${instead}\n`);
for (const prefix of cleaned)
  process.stdout.write(`${prefix} has no banned words left: remove it from \`pending\`.\n`);
process.stdout.write(`${paths.length} files, ${reported.length} findings\n`);
if (paths.length < FEWEST_FILES)
  process.stdout.write(`Fewer than ${FEWEST_FILES} files seen: the check is blind.\n`);
process.exitCode = reported.length > 0 || cleaned.length > 0 || paths.length < FEWEST_FILES ? 1 : 0;
