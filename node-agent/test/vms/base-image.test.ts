// Base images are customized in a real QEMU by a guest of one sector, and checked by reading images that the test builds with mke2fs.

import { execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { lacks, lacksVms } from "../../../scripts/facilities.mjs";
import { scratchDirectory } from "../../../testkit/agent/scratch.ts";
import { atEnd } from "../../../testkit/lifetime/at-end.ts";
import { assertBootable, type BootRequest, bootCommand, customize } from "../../src/vms/base-image/boot.ts";
import { checkImage, datasources } from "../../src/vms/base-image/check.ts";

const A_WHILE = 120_000;
const digestOf = (path: string) => createHash("sha256").update(readFileSync(path)).digest("hex");

/** xor ax,ax; mov es,ax; then BIOS: write the boot sector to the second sector of the disk. */
const writesToDisk = [
  0x31, 0xc0, 0x8e, 0xc0, 0xb8, 0x01, 0x03, 0xb9, 0x02, 0x00, 0x30, 0xf6, 0xbb, 0x00, 0x7c, 0xcd, 0x13,
];
/** ACPI: power off, by the port where the firmware of this machine puts it. */
const powersOff = [0xba, 0x04, 0x06, 0xb8, 0x00, 0x20, 0xef];
const halts = [0xf4, 0xeb, 0xfd];

function qcow2(path: string, raw: Buffer): string {
  writeFileSync(`${path}.raw`, raw);
  execFileSync("qemu-img", ["convert", "-q", "-f", "raw", "-O", "qcow2", `${path}.raw`, path]);
  execFileSync("rm", [`${path}.raw`]);
  return path;
}

function place(code: number[]) {
  const root = scratchDirectory();
  const [base, overlays] = [join(root, "base"), join(root, "overlays")];
  for (const directory of [base, overlays]) mkdirSync(directory);
  const disk = Buffer.alloc(1024 * 1024);
  disk.set(code);
  disk.set([0x55, 0xaa], 510);
  const image = qcow2(join(base, "default.qcow2"), disk);
  return { image, overlays, base, files: () => readdirSync(base).sort() };
}

const requestFor = (image: string, changes: Partial<BootRequest> = {}): BootRequest => ({
  ...{ image, sshForward: undefined, accelerator: "tcg", network: "user", networkInterface: undefined },
  ...{ headless: true, vcpus: 1, memoryMib: 64, ...changes },
});
const optionsFor = (overlays: string, signal = new AbortController().signal) =>
  ({ overlays, accelerator: "tcg", signal }) as const;
const refusalOf = (booting: Promise<unknown>) =>
  booting.then(
    () => undefined,
    (error: { message: string; nextStep: string }) => ({ message: error.message, nextStep: error.nextStep }),
  );

describe.skipIf(lacksVms())("customizing a base image", () => {
  it(
    "VM-07 runs on a copy, and publishes it with a new digest when the guest has shut down",
    async () => {
      const { image, overlays, files } = place([...writesToDisk, ...powersOff, ...halts]);
      const before = digestOf(image);
      const { ino } = statSync(image);
      const published = await customize(requestFor(image), optionsFor(overlays));
      expect(published).toMatchObject({ id: "default", path: image, before, as: "same" });
      expect(published.sha256).not.toBe(before);
      expect(digestOf(image)).toBe(published.sha256);
      // By a rename: whoever had the old file open still has it.
      expect(statSync(image).ino).not.toBe(ino);
      expect(files()).toEqual(["default.qcow2"]);
    },
    A_WHILE,
  );

  it(
    "VM-07 publishes nothing if the guest changed nothing",
    async () => {
      const { image, overlays, files } = place([...powersOff, ...halts]);
      const { ino } = statSync(image);
      expect(await customize(requestFor(image), optionsFor(overlays))).toMatchObject({ as: "unchanged" });
      expect([files(), statSync(image).ino]).toEqual([["default.qcow2"], ino]);
    },
    A_WHILE,
  );

  it(
    "VM-07 does not publish what was switched off, and says where it is",
    async () => {
      const { image, overlays, base } = place([...writesToDisk, ...halts]);
      const before = digestOf(image);
      const refused = refusalOf(customize(requestFor(image), optionsFor(overlays)));
      const copyOf = () => readdirSync(base).find((name) => name.startsWith(".customizing-"));
      const pidOf = () => {
        try {
          return execFileSync("pgrep", ["-f", `qemu-system.*${base}/[.]customizing`], { encoding: "utf8" }).trim();
        } catch {
          return "";
        }
      };
      const pid = await vi.waitUntil(pidOf, { timeout: A_WHILE });
      process.kill(Number(pid), "SIGTERM");
      expect(await refused).toEqual({
        message: expect.stringContaining(`${image} is not changed`),
        nextStep: expect.stringContaining(join(base, copyOf() ?? "no copy")),
      });
      expect(digestOf(image)).toBe(before);
    },
    A_WHILE,
  );

  it(
    "VM-07 publishes beside the image if something began to use it meanwhile",
    async () => {
      const { image, overlays, files } = place([...writesToDisk, ...powersOff, ...halts]);
      const before = digestOf(image);
      const booting = customize(requestFor(image), optionsFor(overlays));
      await vi.waitUntil(() => files().length > 1, { timeout: A_WHILE });
      const overlay = join(overlays, "one.qcow2");
      execFileSync("qemu-img", ["create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", image, overlay]);
      const published = await booting;
      expect(published).toMatchObject({ as: "beside", id: `default-${published.sha256.slice(0, 8)}` });
      expect(digestOf(image)).toBe(before);
      expect(files()).toEqual([`${published.id}.qcow2`, "default.qcow2"]);
    },
    A_WHILE,
  );

  it("VM-03 VM-07 is refused while an overlay or a process needs the image", async () => {
    const { image, overlays } = place(halts);
    const overlay = join(overlays, "one.qcow2");
    execFileSync("qemu-img", ["create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", image, overlay]);
    expect(await refusalOf(assertBootable(image, { overlays }))).toEqual({
      message: expect.stringContaining(`the overlay ${overlay} is based on it`),
      nextStep: expect.stringContaining("holdfast host disable"),
    });
    const other = place(halts);
    const reader = spawn("sh", ["-c", 'exec 3<"$0"; echo open; read end', other.image]);
    atEnd(() => void reader.kill());
    await new Promise((resolve) => reader.stdout.once("data", resolve));
    expect(await refusalOf(assertBootable(other.image, other))).toMatchObject({
      message: expect.stringContaining(`process ${reader.pid} has it open`),
    });
    expect(await refusalOf(assertBootable(join(other.base, "no.qcow2"), other))).toMatchObject({
      nextStep: expect.stringContaining("NODE_AGENT_BASE_IMAGE_DIR/<base_image_id>.qcow2"),
    });
  });

  it("VM-07 has the flags of the runbook in the command of QEMU", () => {
    const command = (changes: Partial<BootRequest>) =>
      bootCommand(requestFor("/base/a.qcow2", changes), "/copy", "tcg");
    expect(command({ sshForward: 2222 })).toContain("user,id=net,hostfwd=tcp:127.0.0.1:2222-:22");
    expect(command({ network: "bridge", networkInterface: "br0" })).toContain("bridge,id=net,br=br0");
    expect(command({ network: "tap", networkInterface: "tap3" })).toContain(
      "tap,id=net,ifname=tap3,script=no,downscript=no",
    );
    expect(command({ headless: false })).toContain("mon:stdio");
    expect(command({}).join(" ")).toContain("-serial null");
    expect(command({}).join(" ")).toContain("file=/copy,format=qcow2");
  });
});

/** Of a guest; an empty text is a program, `-> path` a link. */
function makeImage(files: Record<string, string>, { at }: { at?: "mbr" | "gpt" } = {}): string {
  const directory = scratchDirectory();
  const root = join(directory, "root");
  for (const [path, content] of Object.entries({ "/etc/os-release": "ID=test\n", ...files })) {
    const file = join(root, path);
    mkdirSync(dirname(file), { recursive: true });
    if (content.startsWith("-> ")) symlinkSync(content.slice(3), file);
    else writeFileSync(file, content);
    if (content === "") chmodSync(file, 0o755);
  }
  const system = join(directory, "ext4");
  execFileSync("mke2fs", ["-q", "-t", "ext4", "-d", root, system, "8M"]);
  const start = at === undefined ? 0 : 2048;
  const disk = Buffer.concat([Buffer.alloc(start * 512), readFileSync(system), Buffer.alloc(at ? 64 * 512 : 0)]);
  if (at === "mbr") {
    disk[446 + 4] = 0x83;
    disk.writeUInt32LE(start, 446 + 8);
    disk.set([0x55, 0xaa], 510);
  } else if (at === "gpt") {
    disk.write("EFI PART", 512, "latin1");
    disk.writeBigUInt64LE(2n, 512 + 72);
    disk.writeUInt32LE(4, 512 + 80);
    disk.writeUInt32LE(128, 512 + 84);
    disk.fill(7, 1024, 1024 + 32);
    disk.writeBigUInt64LE(BigInt(start), 1024 + 32);
  }
  return qcow2(join(directory, "image.qcow2"), disk);
}

const complete = {
  "/usr/bin/cloud-init": "",
  "/usr/bin/bash": "",
  "/bin": "-> usr/bin",
  "/usr/lib/jvm/17/bin/java": "",
  "/etc/alternatives/java": "-> /usr/lib/jvm/17/bin/java",
  "/usr/bin/java": "-> /etc/alternatives/java",
  "/usr/bin/curl": "",
  "/etc/cloud/cloud.cfg": "users: []\n",
};

describe.skipIf(lacksVms() || lacks("e2fsprogs"))("the requirements of a base image", () => {
  const outcomes = async (image: string) =>
    Object.fromEntries((await checkImage(image)).map(({ name, outcome }) => [name, outcome]));
  const allPassed = {
    ...{ image: "passed", cloud_init: "passed", nocloud: "passed" },
    ...{ bash: "passed", java: "passed", download: "passed" },
  };

  it.for([undefined, "mbr", "gpt"] as const)(
    "VM-07 are found in a disk with the partition table %s",
    async (at) => {
      expect(await outcomes(makeImage(complete, at ? { at } : {}))).toEqual(allPassed);
    },
  );

  it.for<[string, Record<string, string>, string, RegExp]>([
    ["cloud-init", { "/usr/bin/cloud-init": "not executable" }, "cloud_init", /Install it in the image/],
    [
      "a disabled cloud-init",
      { "/etc/cloud/cloud-init.disabled": "x" },
      "cloud_init",
      /cloud-init[.]disabled exists/,
    ],
    [
      "a masked unit",
      { "/etc/systemd/system/cloud-init.target": "-> /dev/null" },
      "cloud_init",
      /systemctl unmask/,
    ],
    [
      "cloud-init disabled at boot",
      { "/boot/grub/grub.cfg": "linux /vmlinuz ro cloud-init=disabled\n" },
      "cloud_init",
      /kernel's command line/,
    ],
    [
      "NoCloud",
      { "/etc/cloud/cloud.cfg.d/90_dpkg.cfg": "datasource_list: [ Azure, None ]\n" },
      "nocloud",
      /nocloud-fix[.]sh/,
    ],
    ["bash", { "/usr/bin/bash": "no program" }, "bash", /Install bash/],
    ["java behind a dangling link", { "/etc/alternatives/java": "-> /usr/lib/gone" }, "java", /Install a Java/],
    ["curl and fetch", { "/usr/bin/curl": "no program" }, "download", /Install curl/],
  ])("VM-07 VM-09 %s is named when it is missing, with the fix", async ([, files, name, fix]) => {
    const checks = await checkImage(makeImage({ ...complete, ...files }));
    expect(checks.filter(({ outcome }) => outcome !== "passed")).toEqual([
      { name, outcome: "failed", detail: expect.stringMatching(fix) },
    ]);
  });

  it("VM-07 accept fetch instead of curl, and a later file that has NoCloud", async () => {
    const { "/usr/bin/curl": _, ...others } = complete;
    const files = {
      ...others,
      "/usr/local/bin/fetch": "",
      "/etc/cloud/cloud.cfg.d/90_dpkg.cfg": "datasource_list: [ Azure ]\n",
      "/etc/cloud/cloud.cfg.d/99-datasource-nocloud.cfg": "datasource_list: [ NoCloud, None ]\n",
    };
    expect(await outcomes(makeImage(files))).toEqual(allPassed);
  });

  it("VM-07 are reported as not checked where the image cannot be read, and never as met", async () => {
    const empty = qcow2(join(scratchDirectory(), "empty.qcow2"), Buffer.alloc(1024 * 1024));
    const checks = await checkImage(empty);
    expect(checks.map(({ outcome }) => outcome)).toEqual(["passed", ...Array(5).fill("not_checked")]);
    expect(checks[1]?.detail).toContain("holdfast image boot");
    const text = join(scratchDirectory(), "text.qcow2");
    writeFileSync(text, "no image");
    expect((await checkImage(text)).map(({ outcome }) => outcome)).toEqual([
      "failed",
      ...Array(5).fill("not_checked"),
    ]);
  });

  it.for<[string, string[] | undefined]>([
    ["datasource_list: [ NoCloud, None ]", ["NoCloud", "None"]],
    ["datasource_list: ['NoCloud', \"Ec2\"] # both", ["NoCloud", "Ec2"]],
    ["a: 1\ndatasource_list:\n  - NoCloud\n  # why\n  - None\nb: 2\n", ["NoCloud", "None"]],
    ["datasource_list:\n- Ec2", ["Ec2"]],
    ["# datasource_list: [ Azure ]", undefined],
    ["datasource:\n  NoCloud: {}", undefined],
  ])("VM-07 reads the list in %j", ([text, list]) => {
    expect(datasources(text)).toEqual(list);
  });
});
