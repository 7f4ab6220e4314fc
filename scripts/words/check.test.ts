import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { checkWords, type Lists } from "./check.ts";

const lists: Lists = {
  bannedPhrases: { "counts no more": "is no longer accepted" },
  bannedNames: { told: "reported" },
  exempt: [/^CHANGELOG\.md$/],
};
let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "words-"));
});
afterEach(() => rmSync(root, { recursive: true }));

function write(files: Record<string, string>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
}
const check = (fewestFiles = 1) => checkWords(root, lists, { fewestFiles });
const places = ({ findings }: ReturnType<typeof check>) => findings.map(({ path, line }) => `${path}:${line}`);

describe("the check of words", () => {
  it("passes a clean tree", () => {
    write({ "README.md": "It is no longer accepted.", "src/a.ts": "const reported = 1;" });
    expect(check()).toMatchObject({ ok: true, files: 2, findings: [] });
  });

  it("fails for a phrase in any kind of text file, and for a name", () => {
    const phrase = "x\nIt counts no more.";
    const paths = [
      "README.md",
      "a.tsx",
      "deploy/nginx.conf",
      "deploy/unit.service",
      "install.sh",
      "db/a.sql",
      "LICENSE",
    ];
    write({ ...Object.fromEntries(paths.map((path) => [path, phrase])), "src/b.mjs": "let wasTold;" });
    const outcome = check();
    expect(outcome.ok).toBe(false);
    expect(places(outcome)).toEqual([...paths.sort().map((path) => `${path}:2`), "src/b.mjs:1"]);
  });

  it("leaves out exempt files and folders that are not sources", () => {
    const phrase = "It counts no more.";
    write({ "CHANGELOG.md": phrase, "node_modules/a/b.ts": phrase, "web/dist/a.md": phrase, "ok.md": "fine" });
    expect(check()).toMatchObject({ ok: true, files: 1 });
  });

  it("fails when it sees fewer files than there must be", () => {
    write({ "a.md": "nothing banned" });
    expect(check(2).ok).toBe(false);
  });
});
