// bundle.json: a bundle that was applied on this host and is being tried, with everything that it replaces and brings. One
// file, replaced as a whole. While it is not `committed`, the files of the node are the previous ones, and removing it
// is all that a revert takes; from then on the agent finishes the switch at every start, however often it is interrupted.
// bundles.json: the last bundles that were tried here.

import type { RecoveryToken } from "@holdfast/contracts/node/recovery";
import type { AppliedBundle, RecoveryBundle } from "@holdfast/contracts/node/recovery-bundle";
import { readFileIfPresent, removeIfPresent, writeFileDurably } from "@holdfast/kit/files";
import type { Trust } from "../identity/accept-trust.ts";
import { explainWriteError, type StateFiles } from "../identity/state-directory.ts";
import type { PastBundle } from "./decide.ts";

/** A file of the installation. Before: null if there was none. */
export type HostFile = { path: string; mode: number; before: string | null; after: string };

export type Staged = {
  bundle: RecoveryBundle;
  applied: AppliedBundle;
  files: HostFile[];
  /** Private key, PEM. Stored before it is first used: a repeated request must use the same one. */
  key?: string;
  /** What the server issued for it. */
  issued?: { chain: string; trust: Trust; token: RecoveryToken | null };
  /** The address at which it worked: a whole round trip. */
  committed?: { apiUrl: string };
};

/** Everything that is written goes through it, so that tests can interrupt any step. */
export type Disk = {
  write(path: string, content: string, mode: number): void;
  remove(path: string): void;
};

export const disk: Disk = { write: writeFileDurably, remove: removeIfPresent };

const MOST_KEPT = 20;

export function stagedPath({ directory }: Pick<StateFiles, "directory">): string {
  return `${directory}/bundle.json`;
}

function pastPath({ directory }: Pick<StateFiles, "directory">): string {
  return `${directory}/bundles.json`;
}

/** Undefined: there is none. It is written as a whole, so what cannot be read is none either. */
export function readStaged(files: StateFiles): Staged | undefined {
  try {
    const staged = JSON.parse(readFileIfPresent(stagedPath(files)) ?? "null") as Staged | null;
    return staged && staged.bundle.content.bundle_id === staged.applied.id ? staged : undefined;
  } catch {
    return undefined;
  }
}

export function writeStaged(files: StateFiles, staged: Staged, to: Disk = disk): void {
  try {
    to.write(stagedPath(files), `${JSON.stringify(staged, null, 2)}\n`, 0o600);
  } catch (error) {
    throw explainWriteError(error, files.directory);
  }
}

export function readPast(files: StateFiles): PastBundle[] {
  try {
    const found = JSON.parse(readFileIfPresent(pastPath(files)) ?? "[]") as unknown;
    return Array.isArray(found) ? (found as PastBundle[]) : [];
  } catch {
    return [];
  }
}

/** May be repeated. */
export function recordPast(
  files: StateFiles,
  { bundle, applied }: Staged,
  reverted: string | null,
  to: Disk,
): void {
  const { bundle_id: id, seq, node } = bundle.content;
  const others = readPast(files).filter((one) => one.id !== id);
  const past = [{ id, seq, node_id: node.id, at: applied.applied_at, reverted }, ...others].slice(0, MOST_KEPT);
  to.write(pastPath(files), `${JSON.stringify(past, null, 2)}\n`, 0o600);
}
