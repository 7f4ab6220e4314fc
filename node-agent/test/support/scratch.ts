// A state directory of the test's own, removed afterwards.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { atEnd } from "../../../control-plane/test/support/at-end.ts";

export function scratchDirectory(): string {
  const path = mkdtempSync(join(tmpdir(), "holdfast-agent-"));
  atEnd(() => rmSync(path, { recursive: true, force: true }));
  return path;
}
