// Checks a tree of files against the lists. A run that sees few files finds nothing, so that is a failure of its own.

import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Finding, findNames, findPhrases } from "./find.ts";

export type Lists = {
  bannedPhrases: Record<string, string>;
  bannedNames: Record<string, string>;
  exempt: RegExp[];
  pending: { phrases: string[]; names: string[] };
};

export type Outcome = {
  files: number;
  findings: Finding[];
  /** Pending entries without a finding: they should be removed from the list. */
  cleaned: string[];
  ok: boolean;
};

const skippedFolders = new Set(["node_modules", "dist", "test-output", ".git"]);
const text = /\.(ts|tsx|mjs|md|sql|css|html|json|yaml|conf|sh|service)$|(^|\/)[^./]+$/;

export function checkWords(root: string, lists: Lists, { fewestFiles }: { fewestFiles: number }): Outcome {
  const contents = new Map(
    pathsIn(root, lists.exempt).map((path) => [path, readFileSync(join(root, path), "utf8")]),
  );
  const phrases = judge(contents, lists.pending.phrases, (path, content) =>
    findPhrases(path, content, lists.bannedPhrases),
  );
  const names = judge(contents, lists.pending.names, (path, content) =>
    findNames(path, content, lists.bannedNames),
  );
  const findings = [...phrases.findings, ...names.findings];
  const cleaned = [...phrases.cleaned, ...names.cleaned];
  const ok = findings.length === 0 && cleaned.length === 0 && contents.size >= fewestFiles;
  return { files: contents.size, findings, cleaned, ok };
}

function pathsIn(root: string, exempt: RegExp[]): string[] {
  return globSync("**/*", { cwd: root, withFileTypes: true, exclude: (entry) => skippedFolders.has(entry.name) })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(join(root, "/").length))
    .filter((path) => text.test(path) && !exempt.some((pattern) => pattern.test(path)))
    .sort();
}

function judge(
  contents: ReadonlyMap<string, string>,
  pending: string[],
  find: (path: string, content: string) => Finding[],
): Pick<Outcome, "findings" | "cleaned"> {
  const found = [...contents].flatMap(([path, content]) => find(path, content));
  return {
    findings: found.filter(({ path }) => !pending.some((prefix) => path.startsWith(prefix))),
    cleaned: pending.filter((prefix) => !found.some(({ path }) => path.startsWith(prefix))),
  };
}
