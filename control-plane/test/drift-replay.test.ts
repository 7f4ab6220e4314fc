// Evidence of past incidents through today's classifier. A misdiagnosis becomes a file in `evidence/` and a line here:
// `holdfast incident export`, corrected by hand where it was wrong.

import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const pathTo = (from: string) => fileURLToPath(new URL(from, import.meta.url));
const script = pathTo("../../scripts/classify.ts");

/** By file: the reason that was found in the end, and what it explains. */
const expected: Record<string, { reason: string; symptoms: string[] }> = {
  "stale-trust-known-by-the-host-only.json": { reason: "server_tls_untrusted", symptoms: ["agent_down"] },
};

describe("evidence of a past incident", () => {
  it.for(readdirSync(pathTo("evidence")))("DRIFT-07 is classified as it turned out to be: %s", (name) => {
    const printed = execFileSync(process.execPath, [script, pathTo(`evidence/${name}`), "--json"], {
      encoding: "utf8",
    });
    expect(JSON.parse(printed)).toMatchObject({ causes: [expected[name]] });
  });

  it("DRIFT-07 is not guessed: a file that is none is refused, with the place of the mistake", () => {
    const directory = mkdtempSync(join(tmpdir(), "evidence-"));
    try {
      const path = join(directory, "wrong.json");
      const at = "2026-05-21T09:00:00Z";
      const wrong = {
        id: "a",
        kind: "ssh",
        value: "maybe",
        observer: "operator",
        observed_at: at,
        received_at: at,
      };
      writeFileSync(path, JSON.stringify({ format: "holdfast-evidence/1", at, observations: [wrong] }));
      const { status, stderr } = spawnSync(process.execPath, [script, path], { encoding: "utf8" });
      expect(stderr).toMatch(/ssh is one of succeeded, failed\s+→ at observations\[0\]\.value/);
      expect(status).toBe(2);
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});
