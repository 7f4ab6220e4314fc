// What a test has left on this machine: processes, files, sockets, links, mounts, control groups, network namespaces and loop
// devices. Other tests and programs use the machine at the same time, so a thing counts when it carries a mark of the test: in
// its name, its arguments, its environment, its working directory or a file that it has open. A network namespace counts from
// when a marked process was seen in it, whoever is in it later.

import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";

export type HostDiff = {
  /** Of names, paths and arguments. */
  mark(text: string): void;
  /** Looks at what exists now, so that whatever it uses is followed to its end. */
  look(): string[];
  /** What exists now and did not when the diff was opened, or the other way round. Nothing is left: empty. */
  diff(): string[];
};

/** `directories`: all files below them count. */
export function openHostDiff(options: { marks: string[]; directories: string[] }): HostDiff {
  const marks = new Set([...options.marks, ...options.directories]);
  const used: Used = { namespaces: new Set(), sockets: new Set() };
  const has = (text: string) => [...marks].some((mark) => text.includes(mark));
  const look = () => [
    ...options.directories.flatMap(filesBelow),
    ...sharedDirectories.flatMap((directory) => namesIn(directory).filter(has).map(entryOf("file", directory))),
    ...processes(has, used),
    ...unixSockets("self", has, used),
    ...linesOf("/proc/self/mounts").filter(has).map(prefixed("mount")),
    ...controlGroups("/sys/fs/cgroup").filter(has).map(prefixed("cgroup")),
    ...links().filter(has).map(prefixed("link")),
    ...namesIn("/run/netns").filter(has).map(prefixed("named network namespace")),
    ...loopDevices().filter(has).map(prefixed("loop device")),
  ];
  const first = new Set(look());
  return {
    mark: (text) => void marks.add(text),
    look,
    diff() {
      const now = new Set(look());
      return [
        ...[...now].filter((one) => !first.has(one)).map((one) => `+ ${one}`),
        ...[...first].filter((one) => !now.has(one)).map((one) => `- ${one}`),
      ];
    },
  };
}

/** Where a program may leave files beside its own directories. */
const sharedDirectories = ["/tmp", "/var/tmp", "/dev/shm", "/run", "/run/systemd/transient"];

const prefixed = (kind: string) => (text: string) => `${kind} ${text}`;
const entryOf = (kind: string, directory: string) => (name: string) => `${kind} ${join(directory, name)}`;

function filesBelow(directory: string): string[] {
  try {
    return readdirSync(directory, { recursive: true, encoding: "utf8" }).map(entryOf("file", directory));
  } catch {
    return [];
  }
}

/** What marked processes were seen with; it counts, whoever has it later. */
type Used = { namespaces: Set<string>; sockets: Set<string> };

/** Of the network namespace of a process. A socket that was bound by a relative path carries no mark. */
function unixSockets(pid: string, has: (text: string) => boolean, { sockets }: Used): string[] {
  return linesOf(`/proc/${pid}/net/unix`).flatMap((line) => {
    const [inode = "", path = ""] = line.trim().split(/\s+/).slice(6);
    return has(path) || sockets.has(inode) ? `socket ${inode} ${path}` : [];
  });
}

function processes(has: (text: string) => boolean, used: Used): string[] {
  const { namespaces } = used;
  const found = namesIn("/proc").flatMap((pid) => {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) return [];
    const network = linkOf(`/proc/${pid}/ns/net`);
    const command = textOf(`/proc/${pid}/cmdline`).replaceAll("\0", " ");
    const open = namesIn(`/proc/${pid}/fd`).map((name) => linkOf(`/proc/${pid}/fd/${name}`));
    const texts = [command, linkOf(`/proc/${pid}/cwd`), textOf(`/proc/${pid}/environ`), ...open];
    const marked = texts.some(has);
    if (marked && network !== ownNetwork) namespaces.add(network);
    for (const link of marked ? open : []) used.sockets.add(/^socket:\[(\d+)\]$/.exec(link)?.[1] ?? "none");
    return marked || network !== ownNetwork ? [{ pid, command, marked, network }] : [];
  });
  return found.flatMap(({ pid, command, marked, network }) => [
    ...(marked ? [`process ${pid} ${command.slice(0, 200)}`] : []),
    // The kernel lists the sockets of each network namespace apart.
    ...(marked && network !== ownNetwork ? unixSockets(pid, has, used) : []),
    ...(namespaces.has(network) ? [`network namespace ${network} of process ${pid}`] : []),
  ]);
}

const ownNetwork = linkOf("/proc/self/ns/net");

function links(): string[] {
  type Link = { ifname: string; ifalias?: string; master?: string };
  const found = JSON.parse(execFileSync("ip", ["-json", "link", "show"], { encoding: "utf8" })) as Link[];
  return found.map(({ ifname, ifalias = "", master = "" }) => `${ifname} ${ifalias} ${master}`);
}

function loopDevices(): string[] {
  return namesIn("/sys/block").flatMap((name) =>
    name.startsWith("loop") ? `${name} ${textOf(`/sys/block/${name}/loop/backing_file`).trim()}` : [],
  );
}

function controlGroups(root: string, depth = 5): string[] {
  try {
    return readdirSync(root, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .flatMap(({ name }) => [join(root, name), ...(depth > 0 ? controlGroups(join(root, name), depth - 1) : [])]);
  } catch {
    return [];
  }
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

const linesOf = (path: string) => textOf(path).split("\n");

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}
