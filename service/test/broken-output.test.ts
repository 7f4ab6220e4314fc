// What becomes of a process whose reader went away.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it } from "vitest";

const log = new URL("../src/log.ts", import.meta.url).href;
const program = `
  import { createLog } from "${log}";
  const log = createLog({ process: "test", level: "info" });
  log.info("first");
  process.stdin.once("data", () => { log.fatal({}, "last"); process.exit(7); });`;

function start() {
  const child = spawn(process.execPath, ["--input-type=module-typescript", "-e", program], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  return { child, exit: once(child, "exit") };
}

describe("a log", () => {
  it("AUDIT-03 writes its last line before the process ends", async () => {
    const { child, exit } = start();
    let text = "";
    child.stdout.setEncoding("utf8").on("data", (chunk) => {
      text += chunk;
    });
    await once(child.stdout, "data");
    child.stdin.write("go\n");
    expect(await exit).toEqual([7, null]);
    await expect.poll(() => text).toContain('"msg":"last"');
  });

  it("AUDIT-03 neither hangs nor fails when nobody reads it any more", async () => {
    const { child, exit } = start();
    await once(child.stdout, "data");
    child.stdout.destroy();
    await once(child.stdout, "close");
    child.stdin.write("go\n");
    expect(await exit).toEqual([7, null]);
  });
});
