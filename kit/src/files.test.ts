import { spawnSync } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { isErrno, readFileIfPresent, removeIfPresent, writeFileDurably } from "./files.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "holdfast-files-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

describe("writeFileDurably", () => {
  it("replaces the whole content and leaves nothing else behind", () => {
    const path = join(directory, "state.json");
    writeFileDurably(path, "a long first content", 0o600);
    writeFileDurably(path, "short ✓", 0o600);
    expect(readFileSync(path, "utf8")).toBe("short ✓");
    expect(readdirSync(directory)).toEqual(["state.json"]);
  });

  it("SEC-03 gives the file its mode, whatever the old one had", () => {
    const path = join(directory, "secret");
    writeFileSync(path, "old");
    chmodSync(path, 0o644);
    writeFileDurably(path, "new", 0o600);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it("leaves the old content when it fails, and no half-written file beside it", () => {
    const path = join(directory, "state");
    mkdirSync(path);
    writeFileSync(join(path, "old"), "old");
    expect(() => writeFileDurably(path, "new", 0o600)).toThrow(/EISDIR|ENOTEMPTY|EEXIST/);
    expect(readFileSync(join(path, "old"), "utf8")).toBe("old");
    expect(readdirSync(directory)).toEqual(["state"]);
  });

  it("shows a reader the old or the new content, never a part, also when it is killed", () => {
    const path = join(directory, "state");
    const size = 200_000;
    writeFileDurably(path, "0".repeat(size), 0o600);
    const files = JSON.stringify(fileURLToPath(new URL("./files.ts", import.meta.url)));
    const writer = `
      const { writeFileDurably } = await import(${files});
      for (let round = 1; ; round += 1) {
        if (round === 5) setTimeout(() => process.kill(process.pid, "SIGKILL"), 3);
        await new Promise(setImmediate);
        writeFileDurably(${JSON.stringify(path)}, String(round % 10).repeat(${size}), 0o600);
      }`;
    const ended = spawnSync(process.execPath, ["--input-type=module", "-e", writer]);
    expect(ended.signal, String(ended.stderr)).toBe("SIGKILL");
    const content = readFileSync(path, "utf8");
    expect(content).toBe((content[0] ?? "").repeat(size));
  });
});

describe("files that may be absent", () => {
  it("are read as undefined and removed without complaint", () => {
    const path = join(directory, "absent");
    expect(readFileIfPresent(path)).toBeUndefined();
    removeIfPresent(path);
    writeFileSync(path, "here");
    expect(readFileIfPresent(path)).toBe("here");
    removeIfPresent(path);
    expect(readFileIfPresent(path)).toBeUndefined();
  });

  it("still complain about everything but absence", () => {
    expect(() => readFileIfPresent(directory)).toThrow(/EISDIR/);
    expect(() => removeIfPresent(directory)).toThrow(/EISDIR|EPERM/);
    expect(isErrno(Object.assign(new Error(), { code: "EPERM" }), "ENOENT")).toBe(false);
    expect(isErrno({ code: "ENOENT" }, "ENOENT")).toBe(false);
  });
});
