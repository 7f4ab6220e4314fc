// Runs QEMU in the foreground and finds out how its guest ended: QEMU's exit code is the same for a guest that has shut down and for
// one that was switched off. QEMU connects to a socket of this process, over which it reports that, and gets a request to power down.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** Undefined: the guest has shut down by itself, or because it was asked to. Otherwise what happened, as a sentence. */
export async function runGuest(
  [program = "", ...args]: readonly string[],
  { headless, signal }: { headless: boolean; signal: AbortSignal },
): Promise<string | undefined> {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-boot-"));
  const path = join(directory, "qmp");
  let shutDown = false;
  let monitor: Socket | undefined;
  const server = createServer((socket) => {
    monitor = socket;
    socket.on("error", () => undefined);
    socket.write(`${JSON.stringify({ execute: "qmp_capabilities" })}\n`);
    const lines = createInterface({ input: socket });
    lines.on("error", () => undefined);
    lines.on("line", (line) => {
      if (isGuestShutdown(line)) shutDown = true;
    });
    if (signal.aborted) powerDown();
  });
  const powerDown = () => monitor?.write(`${JSON.stringify({ execute: "system_powerdown" })}\n`);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(path, resolve);
  });
  signal.addEventListener("abort", powerDown);
  try {
    return await new Promise<string | undefined>((resolve) => {
      const stdin = headless ? "ignore" : "inherit";
      const child = spawn(program, [...args, "-qmp", `unix:${path}`], { stdio: [stdin, "inherit", "inherit"] });
      child.once("error", (error) => resolve(`QEMU did not start: ${error.message}.`));
      // Its last lines on the socket may come after its end.
      child.once("close", (code, by) => {
        if (code !== 0) resolve(`QEMU ended with ${by ?? code}.`);
        else if (!monitor || monitor.closed) resolve(shutDown ? undefined : NOT_SHUT_DOWN);
        else monitor.once("close", () => resolve(shutDown ? undefined : NOT_SHUT_DOWN));
      });
    });
  } finally {
    signal.removeEventListener("abort", powerDown);
    monitor?.destroy();
    server.close();
    rmSync(directory, { recursive: true, force: true });
  }
}

const NOT_SHUT_DOWN = "The guest was switched off, and did not shut down.";

function isGuestShutdown(line: string): boolean {
  try {
    const { event, data } = JSON.parse(line) as { event?: string; data?: { reason?: string } };
    return event === "SHUTDOWN" && data?.reason === "guest-shutdown";
  } catch {
    return false;
  }
}
