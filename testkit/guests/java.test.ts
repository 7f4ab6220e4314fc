// The stand-ins for java and curl of the small guest, run here by the same busybox: they speak with a controller as the real ones do.

import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import { scratchDirectory } from "../agent/scratch.ts";
import { startController } from "../jenkins/controller.ts";
import { atEnd } from "../lifetime/at-end.ts";

const place = scratchDirectory();

it.skipIf(lacks("busybox"))(
  "VM-06 the guest's stand-in agent fetches agent.jar, connects over WebSocket and runs a build",
  async () => {
    const controller = await startController();
    controller.addNode("guest-1");
    const bin = join(place, "bin");
    mkdirSync(bin);
    // As it is in the guest, whose programs are all busybox; and with a network.
    for (const name of ["nc", "od", "dd", "mkfifo", "cat", "sleep", "grep", "rm"])
      symlinkSync("/bin/busybox", join(bin, name));
    writeFileSync(join(bin, "ip"), "#!/bin/sh\necho default\n", { mode: 0o755 });
    const env = { PATH: bin };
    const run = (script: string, ...args: string[]) =>
      spawn("/bin/busybox", ["sh", join(import.meta.dirname, script), ...args], {
        cwd: place,
        env,
        stdio: "inherit",
      });
    const fetched = run("curl.sh", "-fsS", "-o", "agent.jar", `${controller.url}jnlpJars/agent.jar`);
    await expect.poll(() => fetched.exitCode, { timeout: 30_000 }).toBe(0);
    expect(readFileSync(join(place, "agent.jar"), "utf8")).toContain("stand-in agent");
    writeFileSync(join(place, ".secret"), controller.secretOf("guest-1"));
    const agent = run(
      "java.sh",
      "-jar",
      "agent.jar",
      "-url",
      controller.url,
      "-name",
      "guest-1",
      "-secret",
      "@.secret",
      "-webSocket",
    );
    atEnd(() => agent.kill("SIGKILL"));
    controller.enqueue("compile", "static");
    await expect.poll(() => controller.builds[0]?.result, { timeout: 30_000 }).toBe("SUCCESS");
    controller.enqueue("compile again", "static");
    await expect.poll(() => controller.builds[1]?.result, { timeout: 30_000 }).toBe("SUCCESS");
    await controller.stop();
    await expect.poll(() => agent.exitCode, { timeout: 30_000 }).toBe(0);
  },
);
