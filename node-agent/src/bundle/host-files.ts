// The unit and the settings file of an installation, as far as the installer owns them: written only where a bundle
// differs, with the previous content kept in the staged bundle until its trial has ended.

import { dirname, join } from "node:path";
import type { RecoveryBundle } from "@holdfast/contracts/node/recovery-bundle";
import { isErrno, readFileIfPresent } from "@holdfast/kit/files";
import { BundleRefused } from "./read.ts";
import type { Disk, HostFile } from "./staged.ts";

/** `root`: where the files are found; tests provide a tree. None, if this state directory is not the installer's. */
export function hostFilesOf(
  { content }: RecoveryBundle,
  { stateDir, root = "/" }: { stateDir: string; root?: string },
): HostFile[] {
  const { unit, env } = content.files;
  if (join(root, dirname(env.path)) !== join(stateDir)) return [];
  const envPath = join(root, env.path);
  const envBefore = readFileIfPresent(envPath) ?? null;
  const settings = {
    ...{ path: envPath, mode: 0o600, before: envBefore },
    after: envBefore === null ? env.content : withoutSettings(envBefore, env.unset),
  };
  const unitPath = join(root, unit.path);
  // A host without the unit was not installed by the installer, or runs another supervisor.
  const unitBefore = readFileIfPresent(unitPath);
  const units =
    unitBefore === undefined ? [] : [{ path: unitPath, mode: 0o644, before: unitBefore, after: unit.content }];
  return [...units, settings].filter(({ before, after }) => before !== after);
}

/** All other lines stay as they are. */
export function withoutSettings(env: string, unset: readonly string[]): string {
  const names = new Set(unset);
  return env
    .split("\n")
    .filter((line) => !names.has(/^\s*([A-Za-z_][A-Za-z0-9_]*)\s*=/.exec(line)?.[1] ?? ""))
    .join("\n");
}

/** May be repeated. A file that somebody has changed since is left alone. */
export function installFiles(files: readonly HostFile[], to: Disk): void {
  for (const { path, mode, before, after } of files) {
    if ((readFileIfPresent(path) ?? null) === before) attempt(path, () => to.write(path, after, mode));
  }
}

/** May be repeated. */
export function restoreFiles(files: readonly HostFile[], to: Disk): void {
  for (const { path, mode, before, after } of files) {
    if (readFileIfPresent(path) !== after) continue;
    attempt(path, () => (before === null ? to.remove(path) : to.write(path, before, mode)));
  }
}

function attempt(path: string, change: () => void): void {
  try {
    change();
  } catch (error) {
    if (!(isErrno(error, "EACCES") || isErrno(error, "EPERM"))) throw error;
    throw new BundleRefused(
      "bundle_needs_root",
      `This user may not write ${path}, which belongs to the agent's installation.`,
      "Run the same command as root: sudo holdfast agent bundle apply …",
    );
  }
}
