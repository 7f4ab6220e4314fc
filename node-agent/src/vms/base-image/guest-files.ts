// Reads files of a guest out of its image, without booting or mounting it: qemu-img makes a sparse raw copy, and debugfs reads the first ext2,
// ext3 or ext4 file system in it that looks like a root. Other file systems are reported as not readable.

import { execFile } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, posix } from "node:path";
import { promisify } from "node:util";

export type GuestFiles = {
  /** Of the file that a path leads to, links followed; undefined: there is none. */
  find(path: string): Promise<{ path: string; executable: boolean } | undefined>;
  read(path: string): Promise<string | undefined>;
  list(directory: string): Promise<string[]>;
};

const SECTOR = 512;
const MOST_LINKS = 10;
const run = promisify(execFile);
const environment = { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" };

/** `unreadable`: why nothing can be said about the files, and what to do instead. */
export async function withGuestFiles<T>(
  image: string,
  use: (files: GuestFiles) => Promise<T>,
): Promise<{ result: T } | { unreadable: string }> {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-image-"));
  try {
    const raw = join(directory, "raw");
    await run("qemu-img", ["convert", "-U", "-f", "qcow2", "-O", "raw", image, raw], { env: environment });
    for (const offset of fileSystems(raw)) {
      const files = openFiles(`${raw}?offset=${offset}`);
      if ((await files.list("/etc")).length > 0) return { result: await use(files) };
    }
    return { unreadable: "no ext2, ext3 or ext4 file system with /etc was found in it" };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== "ENOENT") throw new Error(message.split("\n").slice(0, 2).join(" "));
    const program = (error as NodeJS.ErrnoException).path ?? "a program";
    return { unreadable: `${program} is not installed (on Debian: apt-get install qemu-utils e2fsprogs)` };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function openFiles(device: string): GuestFiles {
  const ask = async (request: string) =>
    (await run("debugfs", ["-R", request, device], { env: environment, maxBuffer: 8 * 1024 ** 2 })).stdout;
  const find: GuestFiles["find"] = async (path) => {
    let at = path;
    for (let links = 0; links < MOST_LINKS; links += 1) {
      const about = await ask(`stat ${quoted(at)}`);
      const type = /Type: (\w+)/.exec(about)?.[1];
      if (type === undefined) return undefined;
      const mode = Number.parseInt(/Mode: +(\d+)/.exec(about)?.[1] ?? "0", 8);
      if (type !== "symlink") return { path: at, executable: type === "regular" && (mode & 0o111) !== 0 };
      const target = /Fast link dest: "(.*)"/.exec(about)?.[1] ?? (await ask(`cat ${quoted(at)}`));
      at = posix.resolve(posix.dirname(at), target);
    }
    return undefined;
  };
  return {
    find,
    async read(path) {
      const found = await find(path);
      return found && (await ask(`cat ${quoted(found.path)}`));
    },
    async list(directory) {
      const found = await find(directory);
      if (!found) return [];
      const lines = (await ask(`ls -p ${quoted(found.path)}`)).split("\n");
      return lines
        .flatMap((line) => /^\/\d+\/\d+\/\d*\/\d*\/([^/]+)\//.exec(line)?.[1] ?? [])
        .filter((name) => name !== "." && name !== "..");
    },
  };
}

/** What a guest wrote into its links must not become another request. */
const quoted = (path: string) => `"${path.replaceAll(/["\n\r\0]/g, "")}"`;

/** Offsets, of the whole disk or of partitions. */
function fileSystems(raw: string): number[] {
  const file = openSync(raw, "r");
  const bytes = (at: number, length: number) => {
    const buffer = Buffer.alloc(length);
    readSync(file, buffer, 0, length, at);
    return buffer;
  };
  try {
    const starts = [0, ...gptStarts(bytes), ...mbrStarts(bytes(0, SECTOR))].map((sector) => sector * SECTOR);
    return [...new Set(starts)].filter((start) => bytes(start + 1024 + 56, 2).readUInt16LE() === 0xef53);
  } finally {
    closeSync(file);
  }
}

function mbrStarts(sector: Buffer): number[] {
  if (sector.readUInt16LE(510) !== 0xaa55) return [];
  const entries = [0, 1, 2, 3].map((index) => sector.subarray(446 + index * 16, 462 + index * 16));
  return entries.filter((entry) => entry[4] !== 0 && entry[4] !== 0xee).map((entry) => entry.readUInt32LE(8));
}

function gptStarts(bytes: (at: number, length: number) => Buffer): number[] {
  const header = bytes(SECTOR, SECTOR);
  if (header.toString("latin1", 0, 8) !== "EFI PART") return [];
  const at = Number(header.readBigUInt64LE(72)) * SECTOR;
  const size = header.readUInt32LE(84);
  const count = Math.min(header.readUInt32LE(80), 128);
  if (size < 128 || size > 4096) return [];
  const table = bytes(at, count * size);
  return Array.from({ length: count }, (_, index) => table.subarray(index * size, (index + 1) * size))
    .filter((entry) => entry.subarray(0, 16).some((byte) => byte !== 0))
    .map((entry) => Number(entry.readBigUInt64LE(32)));
}
