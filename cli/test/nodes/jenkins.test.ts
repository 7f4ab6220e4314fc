// One build of a Jenkins controller, with everything real but Jenkins: this machine's agent as the VM host, QEMU, the small guest, whose
// stand-in agent connects to the controller by itself. Nothing is left on the host or on the controller.

import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { AnswerOf } from "@holdfast/contracts/endpoint";
import type { listHosts } from "@holdfast/contracts/endpoints/hosts";
import type { checkJenkinsController, getJenkinsController } from "@holdfast/contracts/endpoints/jenkins";
import type { getLease } from "@holdfast/contracts/endpoints/leases";
import { beforeAll, describe, expect, it } from "vitest";
import { lacksVms } from "../../../scripts/facilities.mjs";
import { scratchDirectory } from "../../../testkit/agent/scratch.ts";
import { smallGuest } from "../../../testkit/guests/small-guest.ts";
import { type StandInController, startController } from "../../../testkit/jenkins/controller.ts";
import { atEnd } from "../../../testkit/lifetime/at-end.ts";
import { type Installation, openInstallation } from "../../../testkit/processes/holdfast.ts";

const without = lacksVms();
const place = scratchDirectory();
const directories = { images: join(place, "base"), seeds: join(place, "ci"), overlays: join(place, "overlays") };
/** On the loopback interface, but not one of the addresses that guests must not reach. */
const ADDRESS = `10.213.${process.pid % 250}.1`;
let installation: Installation;
let controller: StandInController;

beforeAll(async () => {
  if (without) return;
  for (const path of Object.values(directories)) mkdirSync(path);
  copyFileSync(smallGuest(), join(directories.images, "small.qcow2"));
  execFileSync("ip", ["addr", "add", `${ADDRESS}/32`, "dev", "lo"]);
  atEnd(() => execFileSync("ip", ["addr", "del", `${ADDRESS}/32`, "dev", "lo"]));
  controller = await startController({ host: ADDRESS });
  installation = openInstallation();
  atEnd(() => installation.cleanUp());
  await installation.up({
    ...{ HOLDFAST_VM_HOST: "on", HOLDFAST_VM_ACCELERATOR: "tcg", HOLDFAST_VM_BASE_IMAGE_DIR: directories.images },
    ...{ HOLDFAST_VM_CLOUD_INIT_DIR: directories.seeds, HOLDFAST_VM_OVERLAY_DIR: directories.overlays },
    ...{ HOLDFAST_JENKINS_ALLOW_PRIVATE: ADDRESS, HOLDFAST_JENKINS_POLL_SECONDS: "1" },
  }).ready;
});

async function json<T>(args: string[], input?: string): Promise<T> {
  const { code, stdout, stderr } = await installation.run([...args, "--json"], {}, input);
  if (code !== 0) throw new Error(`holdfast ${args.join(" ")} ended with ${code}:\n${stderr}`);
  return JSON.parse(stdout) as T;
}

/** Of VMs: files, processes, sockets and mounts with the paths of this test. */
function traces(): string[] {
  const lines = (path: string) =>
    readFileSync(path, "utf8")
      .split("\n")
      .filter((line) => line.includes(place));
  const commands = readdirSync("/proc").flatMap((pid) => {
    try {
      return /^\d+$/.test(pid) ? readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ") : [];
    } catch {
      return [];
    }
  });
  return [
    ...[directories.seeds, directories.overlays].flatMap((path) => readdirSync(path)),
    ...commands.filter((command) => /qemu|slirp4netns/.test(command) && command.includes(place)),
    ...lines("/proc/net/unix"),
    ...lines("/proc/self/mounts").filter((line) => !line.startsWith("tmpfs")),
  ];
}

describe.skipIf(without)("a queued build of Jenkins", () => {
  it("VM-06 gets a VM whose agent connects by itself, runs there, and leaves nothing on host and controller", async () => {
    type Hosts = AnswerOf<typeof listHosts>;
    await expect
      .poll(async () => (await json<Hosts>(["host", "list"])).items.map((one) => one.schedulable))
      .toEqual([true]);
    // The host computes the digest of the image meanwhile.
    await expect.poll(async () => (await installation.run(["image", "add", "small"])).code).toBe(0);
    await json(["lease", "label", "set", "jenkins", "--image", "small", "--profile", "tiny"]);
    const add = [
      "jenkins",
      "add",
      "ci",
      "--url",
      controller.url,
      "--user",
      controller.user,
      "--label",
      "linux=jenkins",
    ];
    await json(add, `${controller.token}\n`);
    const checked = await json<AnswerOf<typeof checkJenkinsController>>(["jenkins", "check", "ci"]);
    expect(checked).toMatchObject({ usable: true, version: "2.528.1" });
    expect(traces()).toEqual([]);
    controller.addNode("static-1");

    controller.enqueue("compile", "linux && !windows");
    await expect.poll(() => controller.builds[0]?.result, { timeout: 280_000 }).toBe("SUCCESS");
    const show = () => json<AnswerOf<typeof getJenkinsController>>(["jenkins", "show", "ci"]);
    await expect.poll(async () => (await show()).recent.map(({ status }) => status)).toEqual(["ended"]);
    const [build] = (await show()).recent;
    expect(controller.builds).toMatchObject([{ node: build?.node_name }]);
    const lease = await json<AnswerOf<typeof getLease>>(["lease", "show", build?.lease_id ?? ""]);
    expect(lease).toMatchObject({ status: "terminated", created_by: "jenkins" });
    expect(build).toMatchObject({
      build_url: controller.builds[0]?.url,
      reason: { next_step: "No action is needed." },
    });
    const events = lease.timeline.map(({ event }) => event);
    expect(events).toEqual(
      expect.arrayContaining(["place", "launch_succeeded", "terminate", "terminate_succeeded"]),
    );
    expect([...controller.nodes.keys()]).toEqual(["static-1"]);
    expect(traces()).toEqual([]);
  });
});
