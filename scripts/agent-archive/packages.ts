// Where the parts of the archive come from that are made per processor: Node.js and the PTY's native code.
// Those of this machine are installed. Those of another are fetched by npm and taken only if they are what
// the lockfile says.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export type Arch = "x64" | "arm64";
export const arches: readonly Arch[] = ["x64", "arm64"];

const root = fileURLToPath(new URL("../..", import.meta.url));

export function nodePackage(arch: Arch, cache: string): string {
  return directoryOf(`node-linux-${arch}`, cache);
}

export function ptyPackage(arch: Arch, cache: string): string {
  return directoryOf(`@lydell/node-pty-linux-${arch}`, cache);
}

/** What the lockfile pins: it names the package's content. */
export function integrityOf(name: string): { version: string; integrity: string } {
  const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
    packages: Record<string, { version: string; integrity: string }>;
  };
  const pinned = packages[`node_modules/${name}`];
  if (!pinned) throw new Error(`package-lock.json has no ${name}`);
  return pinned;
}

function directoryOf(name: string, cache: string): string {
  const installed = join(root, "node_modules", name);
  return existsSync(installed) ? installed : fetched(name, cache);
}

function fetched(name: string, cache: string): string {
  const { version, integrity } = integrityOf(name);
  const kept = join(cache, `${name.replace("/", "-")}-${version}`);
  if (existsSync(kept)) return kept;
  mkdirSync(cache, { recursive: true });
  const scratch = mkdtempSync(join(cache, "fetching-"));
  try {
    const args = ["pack", `${name}@${version}`, "--silent", "--pack-destination", scratch];
    const file = join(scratch, execFileSync("npm", args, { cwd: scratch, encoding: "utf8" }).trim());
    const found = `sha512-${createHash("sha512").update(readFileSync(file)).digest("base64")}`;
    if (found !== integrity)
      throw new Error(`${name}@${version} is not what package-lock.json says; nothing was used`);
    execFileSync("tar", ["-xzf", file, "-C", scratch, "--no-same-owner"]);
    renameSync(join(scratch, "package"), kept);
    return kept;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
