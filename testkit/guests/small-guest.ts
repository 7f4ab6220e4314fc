// Builds the small guest of the VM tests: Debian's cloud kernel and a busybox in a bootable image of 24 MiB, which reads a
// NoCloud seed and is up in a few seconds under TCG. Built once from Debian's packages and cached; a change of this folder
// builds it anew.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL("./", import.meta.url));
const cache = join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "holdfast-guests");
const modules = [
  "virtio_pci",
  "virtio_blk",
  "virtio_net",
  "virtio_console",
  "virtio_scsi",
  "sr_mod",
  "isofs",
  "button",
  "evdev",
];
const files = ["small-guest.ts", "init.sh", "dhcp.sh", "curl.sh", "java.sh"];

/** Returns the path of the image: copy it, never boot it directly. */
export function smallGuest(): string {
  const version = createHash("sha256");
  for (const file of files) version.update(readFileSync(join(here, file)));
  const image = join(cache, `small-${version.digest("hex").slice(0, 16)}.qcow2`);
  if (existsSync(image)) return image;
  mkdirSync(cache, { recursive: true });
  const work = mkdtempSync(join(cache, "building-"));
  try {
    build(work);
    renameSync(join(work, "guest.qcow2"), image);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return image;
}

function build(work: string): void {
  const run = (command: string, args: string[]) =>
    execFileSync(command, args, { cwd: work, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  const kernel = kernelPackage(run);
  run("apt-get", ["download", "-qq", kernel]);
  const archive = readdirSync(work).find((name) => name.endsWith(".deb")) ?? "";
  run("dpkg-deb", ["-x", archive, "kernel"]);
  const release = readdirSync(join(work, "kernel/lib/modules"))[0] ?? "";
  run("/usr/sbin/depmod", ["-b", "kernel", release]);

  for (const folder of ["bin", "proc", "sys", "dev", "mnt", "run", "tmp", "etc", "lib/modules"])
    mkdirSync(join(work, "root", folder), { recursive: true });
  cpSync("/bin/busybox", join(work, "root/bin/busybox"), { dereference: true });
  cpSync(join(here, "init.sh"), join(work, "root/init"));
  cpSync(join(here, "dhcp.sh"), join(work, "root/dhcp"));
  // What images for Jenkins have: in place of the real ones, which are larger than the guest.
  for (const name of ["curl", "java"]) cpSync(join(here, `${name}.sh`), join(work, "root/bin", name));
  run("chmod", ["755", "root/init", "root/dhcp", "root/bin/busybox", "root/bin/curl", "root/bin/java"]);
  const needed = modules.flatMap((name) =>
    run("/usr/sbin/modprobe", ["-d", "kernel", "-S", release, "--show-depends", name])
      .split("\n")
      .flatMap((line) => /^insmod (\S+)/.exec(line)?.[1] ?? []),
  );
  const order = [...new Set(needed)];
  for (const path of order) cpSync(path, join(work, "root/lib/modules", basename(path)));
  writeFileSync(join(work, "root/lib/modules/order"), `${order.map((path) => basename(path)).join("\n")}\n`);
  run("sh", ["-c", "cd root && find . | busybox cpio -o -H newc 2>/dev/null | gzip -9 > ../initrd"]);

  run("cp", [`kernel/boot/vmlinuz-${release}`, "vmlinuz"]);
  // On a busy machine timer interrupts of TCG come too late for the kernel's check of the IO-APIC, and it would panic.
  const options = "console=ttyS0 quiet panic=-1 tsc=unstable no_timer_check";
  const config = `DEFAULT guest\nLABEL guest\nLINUX vmlinuz\nINITRD initrd\nAPPEND ${options}\n`;
  writeFileSync(join(work, "syslinux.cfg"), config);
  run("truncate", ["-s", "24M", "disk"]);
  run("/usr/sbin/mkfs.vfat", ["-F", "16", "disk"]);
  run("mcopy", ["-i", "disk", "vmlinuz", "initrd", "syslinux.cfg", "::/"]);
  run("syslinux", ["--install", "disk"]);
  run("qemu-img", ["convert", "-O", "qcow2", "disk", "guest.qcow2"]);
}

/** The package that Debian's cloud kernel is in now. */
function kernelPackage(run: (command: string, args: string[]) => string): string {
  const find = () =>
    /Depends: (linux-image-\S+)/.exec(run("apt-cache", ["depends", "linux-image-cloud-amd64"]))?.[1];
  const known = find();
  if (known) return known;
  run("apt-get", ["update", "-qq"]);
  const found = find();
  if (!found) throw new Error("Debian's package linux-image-cloud-amd64 was not found.");
  return found;
}
