// Checks a tree of files against the lists. A run that sees few files finds nothing, so that is a failure of its own.

import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Finding, findNames, findPhrases } from "./find.ts";

export type Lists = {
  bannedPhrases: Record<string, string>;
  bannedNames: Record<string, string>;
  exempt: RegExp[];
};

export type Outcome = {
  files: number;
  findings: Finding[];
  ok: boolean;
};

const skippedFolders = new Set(["node_modules", "dist", "test-output", ".git"]);
const text = /\.(ts|tsx|mjs|md|sql|css|html|json|yaml|conf|sh|service)$|(^|\/)[^./]+$/;

export function checkWords(root: string, lists: Lists, { fewestFiles }: { fewestFiles: number }): Outcome {
  const paths = pathsIn(root, lists.exempt);
  const findings = paths.flatMap((path) => {
    const content = readFileSync(join(root, path), "utf8");
    return [...findPhrases(path, content, lists.bannedPhrases), ...findNames(path, content, lists.bannedNames)];
  });
  return { files: paths.length, findings, ok: findings.length === 0 && paths.length >= fewestFiles };
}

function pathsIn(root: string, exempt: RegExp[]): string[] {
  return globSync("**/*", { cwd: root, withFileTypes: true, exclude: (entry) => skippedFolders.has(entry.name) })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(join(root, "/").length))
    .filter((path) => text.test(path) && !exempt.some((pattern) => pattern.test(path)))
    .sort();
}
