// Everything that VMs of a place leave on this host, as far as it can be distinguished from what others do at the same time: by the
// path of the place, or by the tag.

import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import type { VmPlace } from "./vm-host.ts";

/** Empty before the first VM, and after the last one. */
export function tracesOf(place: VmPlace): string[] {
  const tag = tagIn(place);
  const marks = [place.root, ...(tag === undefined ? [] : [`holdfast-${tag}`])];
  const has = (text: string) => marks.some((mark) => text.includes(mark));
  const lines = (path: string) => readFileSync(path, "utf8").split("\n");
  return [
    ...files(place),
    ...processes(has),
    ...lines("/proc/net/unix")
      .filter(has)
      .map((line) => `socket ${line}`),
    ...lines("/proc/self/mounts")
      .filter((line) => has(line) && !line.startsWith("tmpfs"))
      .map((line) => `mount ${line}`),
    ...cgroups("/sys/fs/cgroup")
      .filter(has)
      .map((path) => `cgroup ${path}`),
    ...links()
      .filter(({ ifalias = "" }) => has(ifalias))
      .map(({ ifname }) => `link ${ifname}`),
  ];
}

function links(): { ifname: string; ifalias?: string }[] {
  return JSON.parse(execFileSync("ip", ["-json", "link", "show"], { encoding: "utf8" }));
}

/** The network namespaces that processes are in. */
export function networkNamespaces(): Set<string> {
  return new Set(
    pids().flatMap((pid) => {
      try {
        return readlinkSync(`/proc/${pid}/ns/net`);
      } catch {
        return [];
      }
    }),
  );
}

/** What belongs to the host itself, and stays. */
const lasting = /^(state|base|ci|overlays|state\/phases|state\/vm-(host|images)[.]json|base\/.*)$/;

function files({ root }: VmPlace): string[] {
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((path) => !lasting.test(path))
    .map((path) => `file ${path}`);
}

function processes(has: (text: string) => boolean): string[] {
  return pids().flatMap((pid) => {
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
      return pid !== process.pid && has(command) ? [`process ${pid} ${command.slice(0, 200)}`] : [];
    } catch {
      return [];
    }
  });
}

function pids(): number[] {
  return readdirSync("/proc").flatMap((name) => (/^\d+$/.test(name) ? Number(name) : []));
}

function cgroups(root: string, depth = 4): string[] {
  try {
    return readdirSync(root, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .flatMap(({ name }) => [join(root, name), ...(depth > 0 ? cgroups(join(root, name), depth - 1) : [])]);
  } catch {
    return [];
  }
}

function tagIn({ stateDir }: VmPlace): string | undefined {
  try {
    return (JSON.parse(readFileSync(join(stateDir, "vm-host.json"), "utf8")) as { tag: string }).tag;
  } catch {
    return undefined;
  }
}
