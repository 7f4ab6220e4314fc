// What some tests need of the machine beyond npm's packages. A test that needs something absent is
// listed as not run, with what would change that; under CI it fails instead. Plain JavaScript:
// `npm test` reads it before anything is installed.

import { existsSync, readdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

/** Chromium without windows: the pages' tests take a third less processor time than with the whole browser. */
export const chromiumPath = "/usr/bin/chromium-headless-shell";

/** A directory with `bin/`: server and tools of one version, as its tools demand. Undefined: not installed. */
export function debianPostgres() {
  const all = "/usr/lib/postgresql";
  const versions = existsSync(all) ? readdirSync(all).toSorted((a, b) => Number(b) - Number(a)) : [];
  const isWhole = (/** @type {string} */ root) =>
    ["postgres", "initdb", "pg_dump", "pg_restore"].every((name) => existsSync(`${root}/bin/${name}`));
  return versions.map((version) => `${all}/${version}`).find(isWhole);
}

export const facilities = {
  root: {
    present: () => process.getuid?.() === 0,
    covers: "accounts of other users, directories they cannot enter",
    remedy: "run the tests as root",
  },
  openCheckout: {
    present: () => isOpenToOthers(fileURLToPath(new URL("..", import.meta.url))),
    covers: "commands of this checkout run by other users",
    remedy: "check it out below a directory that others may enter",
    // A checkout below root's home is a fair place to run the tests from.
    demandedByCi: false,
  },
  openssl: {
    present: () => existsSync("/usr/bin/openssl"),
    covers: "listeners that speak TLS",
    remedy: "apt-get install openssl",
    debianPackage: "openssl",
  },
  chromium: {
    present: () => existsSync(chromiumPath),
    covers: "the web app in a browser",
    remedy: "apt-get install chromium-headless-shell",
    debianPackage: "chromium-headless-shell",
  },
  nft: {
    present: () => existsSync("/usr/sbin/nft"),
    covers: "faults of the network in the chaos lab",
    remedy: "apt-get install nftables",
    debianPackage: "nftables",
  },
  dnsmasq: {
    present: () => existsSync("/usr/sbin/dnsmasq"),
    covers: "name servers in the chaos lab",
    remedy: "apt-get install dnsmasq-base",
    debianPackage: "dnsmasq-base",
  },
  faketime: {
    present: () =>
      readdirSync("/usr/lib").some((name) => existsSync(`/usr/lib/${name}/faketime/libfaketime.so.1`)),
    covers: "wrong clocks in the chaos lab",
    remedy: "apt-get install faketime",
    debianPackage: "faketime",
  },
  nginx: {
    present: () => existsSync("/usr/sbin/nginx"),
    covers: "an nginx in front of the listeners, and rolling restarts behind it",
    remedy: "apt-get install nginx",
    debianPackage: "nginx",
  },
  redis: {
    present: () => existsSync("/usr/bin/redis-server"),
    covers: "several gateways with a Redis",
    remedy: "apt-get install redis-server",
    debianPackage: "redis-server",
  },
  postgresql: {
    present: () => debianPostgres() !== undefined,
    covers: "backups of the database in the chaos lab, and its oldest supported server",
    remedy: "apt-get install postgresql",
    debianPackage: "postgresql",
  },
  sshd: {
    present: () => existsSync("/usr/sbin/sshd") && existsSync("/usr/bin/ssh"),
    covers: "the node's part of a preflight over SSH",
    remedy: "apt-get install openssh-server openssh-client",
    debianPackage: "openssh-server",
  },
  bubblewrap: {
    present: () => existsSync("/usr/bin/bwrap"),
    covers: "sandboxes of shell steps without a daemon",
    remedy: "apt-get install bubblewrap",
    debianPackage: "bubblewrap",
  },
  nspawn: {
    present: () => existsSync("/usr/bin/systemd-nspawn"),
    covers: "the agent's installation under systemd",
    remedy: "apt-get install systemd-container",
    debianPackage: "systemd-container",
  },
  docker: {
    present: () => existsSync("/usr/sbin/dockerd") && existsSync("/usr/bin/docker"),
    covers: "shell steps in containers of docker",
    remedy: "apt-get install docker.io",
    debianPackage: "docker.io",
  },
  podman: {
    present: () => existsSync("/usr/bin/podman"),
    covers: "shell steps in containers of podman",
    remedy: "apt-get install podman",
    debianPackage: "podman",
  },
  runc: {
    present: () => existsSync("/usr/sbin/runc"),
    covers: "containers of podman with the first version of cgroups",
    remedy: "apt-get install runc",
    debianPackage: "runc",
  },
  catatonit: {
    present: () => existsSync("/usr/bin/catatonit"),
    covers: "the first process in containers of podman",
    remedy: "apt-get install catatonit",
    debianPackage: "catatonit",
  },
  busybox: {
    present: () => existsSync("/bin/busybox"),
    covers: "the image of containers and the programs of the small guest in tests",
    remedy: "apt-get install busybox-static",
    debianPackage: "busybox-static",
  },
  qemu: {
    present: () => existsSync("/usr/bin/qemu-system-x86_64"),
    covers: "VMs",
    remedy: "apt-get install qemu-system-x86",
    debianPackage: "qemu-system-x86",
  },
  e2fsprogs: {
    present: () => existsSync("/sbin/debugfs") && existsSync("/sbin/mke2fs"),
    covers: "reading files out of base images",
    remedy: "apt-get install e2fsprogs",
    debianPackage: "e2fsprogs",
  },
  qemuImg: {
    present: () => existsSync("/usr/bin/qemu-img"),
    covers: "disks of VMs",
    remedy: "apt-get install qemu-utils",
    debianPackage: "qemu-utils",
  },
  slirp4netns: {
    present: () => existsSync("/usr/bin/slirp4netns"),
    covers: "the way out of VMs on the user network",
    remedy: "apt-get install slirp4netns",
    debianPackage: "slirp4netns",
  },
  syslinux: {
    present: () => existsSync("/usr/bin/syslinux"),
    covers: "the boot loader of the small guest",
    remedy: "apt-get install syslinux",
    debianPackage: "syslinux",
  },
  mtools: {
    present: () => existsSync("/usr/bin/mcopy"),
    covers: "the disk of the small guest",
    remedy: "apt-get install mtools",
    debianPackage: "mtools",
  },
  dosfstools: {
    present: () => existsSync("/usr/sbin/mkfs.vfat"),
    covers: "the disk of the small guest",
    remedy: "apt-get install dosfstools",
    debianPackage: "dosfstools",
  },
  kmod: {
    present: () => existsSync("/usr/sbin/depmod"),
    covers: "the kernel modules of the small guest",
    remedy: "apt-get install kmod",
    debianPackage: "kmod",
  },
  vi: {
    present: () => existsSync("/usr/bin/vi"),
    covers: "a full-screen program in a terminal",
    remedy: "apt-get install vim-tiny",
    debianPackage: "vim-tiny",
  },
};

/** For `it.skipIf(lacks("root"))`. Under CI it throws, for all that CI must have. */
export function lacks(/** @type {keyof typeof facilities} */ name) {
  const facility = facilities[name];
  if (facility.present()) return false;
  const demanded = !("demandedByCi" in facility) || facility.demandedByCi;
  if (process.env.CI && demanded) throw new Error(`CI must have ${name}: ${facility.remedy}`);
  return true;
}

/** Everything that a test with a VM needs. */
export function lacksVms() {
  const needed = /** @type {const} */ ([
    "root",
    "qemu",
    "qemuImg",
    "slirp4netns",
    "syslinux",
    "mtools",
    "dosfstools",
    "busybox",
    "kmod",
  ]);
  return needed.map((name) => lacks(name)).includes(true) || process.arch !== "x64";
}

function isOpenToOthers(/** @type {string} */ path) {
  const othersMayEnter = (statSync(path).mode & 0o001) !== 0;
  return othersMayEnter && (path === "/" || isOpenToOthers(dirname(path)));
}
