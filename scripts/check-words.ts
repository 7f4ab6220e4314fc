// Keeps banned words out of the repository: docs, comments, printed text, identifiers and file names. The lists are in
// scripts/words/banned.ts.

import { fileURLToPath } from "node:url";
import * as lists from "./words/banned.ts";
import { checkWords } from "./words/check.ts";

const FEWEST_FILES = 700;

const root = fileURLToPath(new URL("..", import.meta.url));
const { files, findings, ok } = checkWords(root, lists, { fewestFiles: FEWEST_FILES });
for (const { path, line, found, instead } of findings)
  process.stdout.write(`${path}:${line}: “${found}” → ${instead}\n`);
process.stdout.write(`${files} files, ${findings.length} findings\n`);
if (files < FEWEST_FILES) process.stdout.write(`Fewer than ${FEWEST_FILES} files seen: the check is blind.\n`);
process.exitCode = ok ? 0 : 1;
