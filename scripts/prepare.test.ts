// Preparing a checkout, when the person changes their mind.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readFileIfPresent } from "@holdfast/kit/files";
import { identify } from "@holdfast/kit/processes";
import { afterAll, describe, expect, it } from "vitest";

const directory = mkdtempSync(join(tmpdir(), "holdfast-prepare-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

describe("a step of npm start", () => {
  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("OPS-01 ends with all it started on %s", async (signal, code) => {
    const pidFile = join(directory, signal);
    const prepare = new URL("./prepare.mjs", import.meta.url).href;
    const step = `import { run } from "${prepare}"; await run("sh", ["-c", "sh -c 'echo $$ > ${pidFile}; sleep 60'; true"]);`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", step], { stdio: "inherit" });
    const exit = once(child, "exit");
    await expect.poll(() => readFileIfPresent(pidFile)?.trim()).toMatch(/^\d+$/);
    child.kill(signal);
    expect(await exit).toEqual([code, null]);
    const grandchild = Number(readFileIfPresent(pidFile));
    await expect.poll(() => identify(grandchild)).toBeUndefined();
  });
});
