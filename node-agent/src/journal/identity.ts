// The identity of a journal: random, and only of the two files that it was made for. A journal that was created anew, copied,
// restored or damaged may not know what ran, so it gets another one; the control plane never sends it what an earlier one got.

import { randomUUID } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { writeFileDurably } from "@holdfast/kit/files";
import { uuidForm } from "@holdfast/kit/uuid";
import { fileNames } from "./storage.ts";

const FILE = "journal-id";

/**
 * Of the open journal in `directory`. If it cannot be stored, because the disk is full, the next start gets another one:
 * `onUnwritable` learns why.
 */
export function journalIdOf(
  directory: string,
  options: { isDamaged: boolean; onUnwritable(error: unknown): void },
): string {
  const files = fileNames.map((name) => {
    const { ino, birthtimeNs } = statSync(join(directory, name), { bigint: true });
    // The number alone is given again to the next file, also at once.
    return `${ino} ${birthtimeNs}`;
  });
  const known = options.isDamaged ? undefined : read(join(directory, FILE), files);
  if (known !== undefined) return known;
  const id = randomUUID();
  try {
    writeFileDurably(join(directory, FILE), `${JSON.stringify({ id, files })}\n`, 0o600);
  } catch (error) {
    options.onUnwritable(error);
  }
  return id;
}

/** Undefined: there is none, or it was made for other files. */
function read(path: string, files: readonly string[]): string | undefined {
  try {
    const { id, files: madeFor } = JSON.parse(readFileSync(path, "utf8")) as { id?: unknown; files?: unknown };
    if (typeof id !== "string" || !uuidForm.test(id) || !Array.isArray(madeFor)) return undefined;
    return madeFor.length === files.length && files.every((file, at) => file === madeFor[at]) ? id : undefined;
  } catch {
    return undefined;
  }
}
