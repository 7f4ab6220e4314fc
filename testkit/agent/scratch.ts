// A state directory of the test's own, removed afterwards.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { atEnd } from "../lifetime/at-end.ts";

export function scratchDirectory(): string {
  const path = mkdtempSync(join(tmpdir(), "holdfast-agent-"));
  // A process that was just killed may have left a file while the others were removed.
  atEnd(() => rmSync(path, { recursive: true, force: true, maxRetries: 10 }));
  return path;
}
