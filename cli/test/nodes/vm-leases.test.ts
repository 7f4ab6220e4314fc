// One VM of a whole installation, as a person gets it: this machine's agent as the VM host, real QEMU, the small guest, whose shell
// answers on the serial port.

import { spawn } from "node:child_process";
import { copyFileSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { AnswerOf } from "@holdfast/contracts/endpoint";
import type { listHosts } from "@holdfast/contracts/endpoints/hosts";
import type { getLease } from "@holdfast/contracts/endpoints/leases";
import { beforeAll, describe, expect, it } from "vitest";
import { lacks, lacksVms } from "../../../scripts/facilities.mjs";
import { scratchDirectory } from "../../../testkit/agent/scratch.ts";
import { keepScreenshot, openChromium, withoutWebgl } from "../../../testkit/browser/browser.ts";
import { smallGuest } from "../../../testkit/guests/small-guest.ts";
import { atEnd } from "../../../testkit/lifetime/at-end.ts";
import { type Installation, openInstallation } from "../../../testkit/processes/holdfast.ts";
import { createFirstAccount } from "../support/at-page.ts";

const command = fileURLToPath(new URL("../../bin/holdfast.mjs", import.meta.url));
const without = lacksVms();
const place = scratchDirectory();
const [images, seeds, overlays] = ["base", "seeds", "overlays"].map((name) => join(place, name)) as [
  string,
  string,
  string,
];
let installation: Installation;

beforeAll(async () => {
  if (without) return;
  for (const path of [images, seeds, overlays]) mkdirSync(path);
  copyFileSync(smallGuest(), join(images, "small.qcow2"));
  installation = openInstallation();
  atEnd(() => installation.cleanUp());
  await installation.up({
    HOLDFAST_VM_HOST: "on",
    HOLDFAST_VM_ACCELERATOR: "tcg",
    ...{
      HOLDFAST_VM_BASE_IMAGE_DIR: images,
      HOLDFAST_VM_CLOUD_INIT_DIR: seeds,
      HOLDFAST_VM_OVERLAY_DIR: overlays,
    },
  }).ready;
});

async function json<T>(args: string[]): Promise<T> {
  const { code, stdout, stderr } = await installation.run([...args, "--json"]);
  if (code !== 0) throw new Error(`holdfast ${args.join(" ")} ended with ${code}:\n${stderr}`);
  return JSON.parse(stdout) as T;
}

type Lease = AnswerOf<typeof getLease>;

/** `holdfast vm console`, with this input, until the VM is gone or the command is ended. */
function openConsole(leaseId: string) {
  const env = { PATH: process.env["PATH"] ?? "", HOLDFAST_DATA_DIR: installation.dataDir, HOME: place };
  const child = spawn(process.execPath, [command, "vm", "console", leaseId], { env, cwd: "/", stdio: "pipe" });
  atEnd(() => child.kill("SIGKILL"));
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  child.stdin.on("error", () => undefined);
  const ended = new Promise<{ code: number | null; stderr: string }>((resolve) =>
    child.once("close", (code) => resolve({ code, stderr })),
  );
  return { type: (text: string) => void child.stdin.write(text), shown: () => stdout, ended };
}

describe.skipIf(without)("a lease", () => {
  const { visit } = openChromium(withoutWebgl);
  let lease: Lease;
  const show = () => json<Lease>(["lease", "show", lease.id]);

  it("VM-03 VM-04 is a VM whose guest connects", async () => {
    type Hosts = AnswerOf<typeof listHosts>;
    const schedulable = async () => (await json<Hosts>(["host", "list"])).items.map((one) => one.schedulable);
    await expect.poll(schedulable).toEqual([true]);
    // The host computes the digest of the image meanwhile.
    await expect.poll(async () => (await installation.run(["image", "add", "small"])).code).toBe(0);
    lease = await json<Lease>(["lease", "create", "--image", "small", "--profile", "tiny", "--wait"]);
    atEnd(() => installation.run(["lease", "terminate", lease.id]));
    expect(lease).toMatchObject({ status: "connected", image_id: "small" });
    expect([readdirSync(seeds), readdirSync(overlays)]).toEqual([[lease.vm_id], [expect.any(String)]]);
  });

  it("VM-03 DASH-05 has a serial log and a console, on the command line and in the browser, until it is terminated", async () => {
    const following = installation.start(["lease", "log", lease.id, "--follow"]);
    const console = openConsole(lease.id);
    await expect.poll(() => console.shown()).toContain("is up after");
    console.type("echo answer-$((6 * 7))\n");
    await expect.poll(() => console.shown()).toContain("answer-42");
    await expect.poll(() => following.printed().stdout).toMatch(/guest \S+ is up after[\s\S]*answer-42/);
    expect((await installation.run(["lease", "log", lease.id])).stdout).toContain("answer-42");
    // Reading leaves no tasks behind.
    const { items } = await json<{ items: unknown[] }>(["task", "list", "--type", "vm.serial_log"]);
    expect(items.length).toBeLessThan(3);
    const listed = await json<{ items: { lease_id: string; username: string }[] }>(["terminal", "list"]);
    expect(listed.items).toMatchObject([{ lease_id: lease.id, username: "console" }]);

    if (!lacks("chromium")) await lookAtPages();
    else await json(["lease", "terminate", lease.id]);

    const { code, stderr } = await console.ended;
    expect(stderr).toContain("The VM has ended, and its console with it.");
    expect(code).not.toBe(0);
    expect(await following.ended).toMatchObject({ code: 0 });
    await expect.poll(async () => (await show()).status).toBe("terminated");
    expect([readdirSync(seeds), readdirSync(overlays)]).toEqual([[], []]);
    expect((await installation.run(["lease", "log", lease.id])).stdout).toContain("answer-42");
    const refused = await installation.run(["vm", "console", lease.id]);
    expect(refused).toMatchObject({ code: expect.any(Number), stderr: expect.stringContaining("no running VM") });
    const audit = await json<{ items: { action: string; details: object }[] }>([
      "audit",
      "list",
      "--action",
      "terminal.close",
    ]);
    expect(audit.items.map(({ details }) => details)).toContainEqual(
      expect.objectContaining({ lease_id: lease.id, reason: "terminal_vm_ended" }),
    );
  });

  it("VM-03 runs a command in a fresh VM: shows its output, ends with its exit code, and leaves no VM", async () => {
    const run = (...args: string[]) =>
      installation.run(["vm", "run", "--image", "small", "--profile", "tiny", ...args]);
    const ended = await run(
      "--",
      "sh",
      "-c",
      "echo to the $0; sleep 1; echo on stderr >&2; sleep 1; exit 7",
      "terminal",
    );
    expect(ended).toMatchObject({ code: 7, stdout: "to the terminal\non stderr\n" });
    const left = () => [readdirSync(seeds), readdirSync(overlays)];
    await expect.poll(left, { timeout: 60_000 }).toEqual([[], []]);
    const pieces = await json<{ items: unknown[] }>(["task", "list", "--type", "vm.output"]);
    expect(pieces.items).toHaveLength(1);
    const begun = installation.start([
      ...["vm", "run", "--image", "small", "--profile", "tiny", "--", "sh", "-c", "echo begun; sleep 1000"],
    ]);
    await expect.poll(() => begun.printed().stdout, { timeout: 120_000 }).toBe("begun\n");
    expect(left()).not.toEqual([[], []]);
    begun.process.kill("SIGINT");
    expect(await begun.ended).toMatchObject({ code: 130 });
    await expect.poll(left, { timeout: 60_000 }).toEqual([[], []]);
    // As with `| head`: nobody reads the output any more.
    const unread = installation.start([
      ...[
        "vm",
        "run",
        "--image",
        "small",
        "--profile",
        "tiny",
        "--",
        "sh",
        "-c",
        "while echo more; do sleep 1; done",
      ],
    ]);
    await expect.poll(() => unread.printed().stdout, { timeout: 120_000 }).toContain("more\n");
    unread.process.stdout?.destroy();
    expect(await unread.ended).toMatchObject({ code: 141 });
    await expect.poll(left, { timeout: 60_000 }).toEqual([[], []]);
    const refused = await installation.run(["vm", "run", "--image", "none", "--", "true"]);
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("image_unknown") });
  });

  async function lookAtPages(): Promise<void> {
    const { page, complaints } = await visit();
    await createFirstAccount(page, (await json<{ url: string }>(["admin", "link"])).url);
    await page.goto(new URL(`/leases/${lease.id}`, page.url()).href);
    const log = page.getByRole("region", { name: "Serial log" });
    await log.getByText("answer-42").first().waitFor();
    await keepScreenshot(page, "vm-page");
    await page.getByRole("link", { name: "Open console" }).click();
    await page.locator('[data-phase="ready"]').waitFor();
    const rows = page.locator(".xterm-rows");
    await page.keyboard.type("clear; echo browser-$((7 * 7)); cat /proc/version\n");
    await rows.getByText("browser-49").first().waitFor();
    await rows.getByText("Linux version").first().waitFor();
    await keepScreenshot(page, "vm-console");
    const other = await page.context().newPage();
    await other.goto(new URL("/terminals", page.url()).href);
    await other.getByRole("link", { name: "console on" }).first().waitFor();
    await keepScreenshot(other, "my-terminals-console");
    await other.goto(new URL(`/leases/${lease.id}`, page.url()).href);
    await other.getByRole("region", { name: "Serial log" }).getByText("browser-49").first().waitFor();
    await other.getByRole("button", { name: /^Terminate/ }).click();
    await page.getByText("The VM has ended, and its console with it.").waitFor();
    await keepScreenshot(page, "vm-console-ended");
    await other.getByRole("status").getByText("Terminated").waitFor();
    await keepScreenshot(other, "vm-page-ended");
    await other.goto(new URL("/ui", page.url()).href);
    await other.getByRole("heading", { name: "Hosts", level: 1 }).waitFor();
    await other.getByText("small").first().waitFor();
    await keepScreenshot(other, "hosts-real");
    expect(complaints).toEqual([]);
  }
});
