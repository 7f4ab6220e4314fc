// next.json: what the server offered and this agent has not adopted yet, beside the files in force. One file, replaced as
// a whole. Adopting writes the file in force first and then removes the part from here, so that a crash between the two
// leaves a candidate that equals what is in force.

import type { EnvironmentProfile } from "@holdfast/contracts/node/protocol";
import { canonicalJson } from "@holdfast/kit/canonical-json";
import { readFileIfPresent, removeIfPresent, writeFileDurably } from "@holdfast/kit/files";
import { parseIdentity } from "./identity-file.ts";
import { explainWriteError, type StateFiles } from "./state-directory.ts";
import type { Candidates, Way } from "./trials.ts";
import { sha256OfRoot } from "./trust-file.ts";

type Stored = { identity?: string; roots?: string[]; profile?: EnvironmentProfile };

/** Skips damaged parts and those of another node: the server offers them again if they are still current. */
export function readCandidates(files: StateFiles, nodeId: string): Candidates {
  const stored = readStored(files);
  const identity = attempt(() => stored.identity && parseIdentity(stored.identity, files.next));
  const roots = attempt(() => stored.roots?.filter((root) => sha256OfRoot(root) !== ""));
  const { profile } = stored;
  return {
    ...(identity && identity.nodeId === nodeId ? { identity } : {}),
    ...(roots && roots.length > 0 ? { roots } : {}),
    ...(typeof profile?.version === "number" && typeof profile.endpoints === "object" ? { profile } : {}),
  };
}

/** Removes the file when there is none left. */
export function writeCandidates(files: StateFiles, { identity, roots, profile }: Candidates): void {
  const stored: Stored = {
    ...(identity ? { identity: identity.keyPem + identity.chainPem } : {}),
    ...(roots ? { roots: [...roots] } : {}),
    ...(profile ? { profile } : {}),
  };
  try {
    if (Object.keys(stored).length === 0) removeIfPresent(files.next);
    else writeFileDurably(files.next, `${JSON.stringify(stored, null, 2)}\n`, 0o600);
  } catch (error) {
    throw explainWriteError(error, files.directory);
  }
}

export function withoutPresent(candidates: Candidates, present: Way): Candidates {
  const { identity, roots, profile } = candidates;
  const known = (all: readonly string[]) => all.map(sha256OfRoot).toSorted();
  return {
    ...(identity && identity.certificate.serial !== present.identity.certificate.serial ? { identity } : {}),
    ...(roots && !isSame(known(roots), known(present.roots)) ? { roots } : {}),
    ...(profile && !isSame(profile, present.profile) ? { profile } : {}),
  };
}

/** For plain data. Not `node:util`, which would load much code that an agent never uses. */
export function isSame(one: unknown, other: unknown): boolean {
  return canonicalJson(one) === canonicalJson(other);
}

function readStored(files: StateFiles): Stored {
  return attempt(() => JSON.parse(readFileIfPresent(files.next) ?? "{}") as Stored | null) ?? {};
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
