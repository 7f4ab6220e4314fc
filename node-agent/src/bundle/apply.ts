// Applies a recovery bundle on this host: verified, stored beside what is in force in one step, and tried by the agent from
// then on (trial.ts). Needs no connection, and replaces no file of the node.

import { chownSync, statSync } from "node:fs";
import type { AppliedBundle, RecoveryBundle } from "@holdfast/contracts/node/recovery-bundle";
import { readFileIfPresent } from "@holdfast/kit/files";
import { type AgentFile, readAgentFile, trustVersions } from "../identity/agent-file.ts";
import { HostProblem, prepareStateDirectory, type StateFiles, stateFiles } from "../identity/state-directory.ts";
import { type HostState, refusalOf } from "./decide.ts";
import { hostFilesOf, installFiles, restoreFiles } from "./host-files.ts";
import { type Unverified, verify } from "./read.ts";
import { finish, revert } from "./settle.ts";
import { type Disk, disk, readPast, readStaged, type Staged, stagedPath, writeStaged } from "./staged.ts";

export type ApplyOptions = {
  stateDir: string;
  /** From the operator, or from the pasted line. */
  rootSha256?: string | undefined;
  node?: string | undefined;
  newState?: boolean;
  now?: number;
  disk?: Disk;
  /** Where the unit is found; tests provide a tree. */
  root?: string;
};

/** Verifies it, and returns why it cannot be applied here; undefined: it can. Changes nothing. */
export function inspectBundle({ bundle, rootSha256 }: Unverified, options: ApplyOptions) {
  const files = stateFiles(options.stateDir);
  verify(bundle, { known: knownRoots(files), rootSha256: options.rootSha256 ?? rootSha256 });
  return { bundle, refusal: refusalOf(bundle, hostState(files, options)) };
}

export function applyBundle(unverified: Unverified, options: ApplyOptions): Staged {
  const { bundle, refusal } = inspectBundle(unverified, options);
  if (refusal) throw refusal;
  const to = options.disk ?? disk;
  const files = prepareStateDirectory(options.stateDir);
  const present = readStaged(files);
  // One that has worked is finished first; one that is still being tried makes room for the newer one.
  if (present?.committed) finish(files, present, to);
  else if (present) revert(files, present, "replaced by a newer bundle", to);
  const staged: Staged = {
    bundle,
    applied: appliedOf(bundle, nodeOf(files), options.now ?? Date.now()),
    files: hostFilesOf(bundle, { stateDir: options.stateDir, ...(options.root ? { root: options.root } : {}) }),
  };
  writeStaged(files, staged, to);
  giveToAgent(files);
  try {
    installFiles(staged.files, to);
  } catch (error) {
    restoreFiles(staged.files, to);
    revert(files, staged, (error as Error).message, to);
    throw error;
  }
  return staged;
}

/** Root may apply it for an agent that runs as another user. */
function giveToAgent(files: StateFiles): void {
  const { uid, gid } = statSync(files.directory);
  if (process.getuid?.() === 0 && uid !== 0) chownSync(stagedPath(files), uid, gid);
}

function hostState(files: StateFiles, { node, newState, now }: ApplyOptions): HostState {
  const agent = nodeOf(files);
  const staged = readStaged(files);
  const { bundle_id: id, seq, node: of } = staged?.bundle.content ?? {};
  const tried =
    staged && id && seq && of ? [{ id, seq, node_id: of.id, at: staged.applied.applied_at, reverted: null }] : [];
  return {
    node: agent && { id: agent.node_id, name: agent.node_name },
    ...{ wanted: node, newState: newState === true, past: [...tried, ...readPast(files)] },
    now: now ?? Date.now(),
  };
}

/** Undefined: this host has no readable state of a node. */
function nodeOf(files: StateFiles): AgentFile | undefined {
  try {
    return readAgentFile(files);
  } catch (error) {
    if (error instanceof HostProblem && error.reason === "identity_key_missing") return undefined;
    throw error;
  }
}

const certificate = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n?/g;

/** Whatever this host trusts, in daily use or for recovery. What cannot be read is not trusted. */
function knownRoots(files: StateFiles): string[] {
  return [files.trust, files.recoveryRoots].flatMap((path) => {
    try {
      return readFileIfPresent(path)?.match(certificate) ?? [];
    } catch {
      return [];
    }
  });
}

function appliedOf({ content }: RecoveryBundle, agent: AgentFile | undefined, now: number): AppliedBundle {
  const versions = agent && trustVersions(agent);
  return {
    id: content.bundle_id,
    applied_at: new Date(now).toISOString(),
    before:
      agent && versions
        ? {
            profile: { name: agent.profile.name, version: agent.profile.version },
            ...{ key_set: versions.key_set, trust_bundle: versions.bundle },
          }
        : null,
    after: content.after,
  };
}
