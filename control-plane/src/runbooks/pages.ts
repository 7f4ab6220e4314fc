// The files of docs/runbooks, which belong to the installation like the web app does. Read and rendered when first asked for.

import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { renderRunbook } from "./render.ts";

type Runbook = { markdown: string; html: string };

/** The list of all runbooks, which `npm run generate` writes. */
export const INDEX = "README";

const known = new Map<string, Promise<Runbook>>();

/** `name`: one that the catalogue knows, so that no path leads elsewhere. */
export function readRunbook(name: string): Promise<Runbook> {
  const found = known.get(name);
  if (found) return found;
  const read = load(name);
  known.set(name, read);
  // A file that could not be read is tried again.
  read.catch(() => known.delete(name));
  return read;
}

async function load(name: string): Promise<Runbook> {
  const file = fileURLToPath(new URL(`../../../docs/runbooks/${name}.md`, import.meta.url));
  const markdown = await readFile(file, "utf8");
  return { markdown, html: renderRunbook(markdown) };
}
