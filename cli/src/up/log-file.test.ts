import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, statSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { openLogFile } from "./log-file.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "holdfast-test-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

it("OPS-01 keeps a log file and a few old ones within their limits", () => {
  const path = join(directory, "api.log");
  const log = openLogFile(path, { bytes: 100, kept: 3 });
  for (let line = 0; line < 100; line += 1) {
    log.write(Buffer.from(`line ${String(line).padStart(4, "0")}\n`));
    log.keepWithinLimits();
  }
  log.close();
  expect(readdirSync(directory).sort()).toEqual(["api.log", "api.log.1", "api.log.2", "api.log.3"]);
  for (const name of readdirSync(directory)) expect(statSync(join(directory, name)).size).toBeLessThanOrEqual(110);
  expect(readFileSync(`${path}.1`, "utf8")).toMatch(/line 0098\n$/);
  expect(readFileSync(path, "utf8")).toBe("line 0099\n");
});

it("OPS-01 empties a log file in place, so that a process with the file open goes on in it", () => {
  const path = join(directory, "api.log");
  const log = openLogFile(path, { bytes: 10, kept: 1 });
  const writer = openSync(path, "a");
  writeSync(writer, "a line beyond the limit\n");
  log.keepWithinLimits();
  writeSync(writer, "after\n");
  closeSync(writer);
  log.close();
  expect(readFileSync(path, "utf8")).toBe("after\n");
  expect(readFileSync(`${path}.1`, "utf8")).toBe("a line beyond the limit\n");
});

it("OPS-01 goes on where the last start ended", () => {
  const path = join(directory, "api.log");
  for (const word of ["one", "two"]) {
    const log = openLogFile(path);
    log.write(Buffer.from(`${word}\n`));
    log.close();
  }
  expect(readFileSync(path, "utf8")).toBe("one\ntwo\n");
  expect(statSync(path).mode & 0o777).toBe(0o600);
});
