// The agent's state directory: which files there are, and whether it can be used. Only the agent's
// user may enter it, because the node's key is inside.

import { accessSync, chmodSync, constants, mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import type { DiagnosticReason } from "@holdfast/contracts/reasons/node";
import { isErrno } from "@holdfast/kit/files";

/** A problem of this host that keeps the agent from working, with its reason from the catalogue. */
export class HostProblem extends Error {
  override name = "HostProblem";
  readonly reason: DiagnosticReason;

  constructor(reason: DiagnosticReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

export const STATE_DIR_SETTING = "HOLDFAST_AGENT_STATE_DIR";

export type StateFiles = {
  directory: string;
  /** Key and certificate chain in one file, so that they always match. */
  identity: string;
  /** The roots that the server's certificate must chain to. */
  trust: string;
  agent: string;
  /** What the server has offered and the agent has not adopted yet. */
  next: string;
  /** The key of a join in progress: a retry after a lost response must use the same one. */
  enrolling: string;
  /** Recovery token, and a recovered identity until it is in the files above. */
  recovery: string;
  /** The roots that a recovery server's certificate must chain to. */
  recoveryRoots: string;
};

export function stateFiles(directory: string): StateFiles {
  return {
    directory,
    identity: `${directory}/identity.pem`,
    trust: `${directory}/trust.pem`,
    agent: `${directory}/agent.json`,
    next: `${directory}/next.json`,
    enrolling: `${directory}/enrolling.pem`,
    recovery: `${directory}/recovery.bin`,
    recoveryRoots: `${directory}/recovery-ca.pem`,
  };
}

/** Creates it if it is missing; throws when it cannot be used. */
export function prepareStateDirectory(directory: string): StateFiles {
  ownDirectory(directory);
  try {
    probe(directory);
  } catch (error) {
    throw explainWriteError(error, directory);
  }
  return stateFiles(directory);
}

/** Creates it if it is missing, for this user alone. A disk that is full does not matter. `setting` names it, for errors. */
export function ownDirectory(directory: string, setting = STATE_DIR_SETTING): void {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const { uid, mode } = statSync(directory);
    const own = process.getuid?.() ?? uid;
    if (uid !== own && own !== 0) {
      throw new HostProblem(
        "state_dir_read_only",
        `The state directory ${directory} belongs to the user ${uid}, and the agent runs as ${own}. ` +
          `Run it as its owner, or give it: chown -R ${own} ${directory}`,
      );
    }
    if ((mode & 0o077) !== 0) chmodSync(directory, 0o700);
    accessSync(directory, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw explainWriteError(error, directory, setting);
  }
}

/** Permission bits do not reveal a full disk or a read-only mount; writing a file does. */
function probe(directory: string): void {
  const path = `${directory}/.probe.${process.pid}`;
  try {
    writeFileSync(path, Buffer.alloc(4096), { mode: 0o600, flush: true });
  } finally {
    rmSync(path, { force: true });
  }
}

/** `setting` names the directory. */
export function explainWriteError(error: unknown, path: string, setting = STATE_DIR_SETTING): Error {
  if (error instanceof HostProblem) return error;
  const problem = (reason: DiagnosticReason, message: string) => new HostProblem(reason, message);
  const elsewhere = `or set ${setting} to another directory`;
  if (isErrno(error, "ENOSPC") || isErrno(error, "EDQUOT")) {
    return problem(
      "disk_full",
      `There is no space left where the agent keeps its state, ${path}. Free some, ${elsewhere}.`,
    );
  }
  if (isErrno(error, "EROFS")) {
    return problem(
      "state_dir_read_only",
      `${path} is on a file system mounted read-only. Mount it writable, ${elsewhere}.`,
    );
  }
  if (isErrno(error, "EACCES") || isErrno(error, "EPERM")) {
    return problem(
      "state_dir_read_only",
      `This user may not write to ${path}. Run the agent as the owner of that directory, ${elsewhere}.`,
    );
  }
  if (isErrno(error, "ENOTDIR") || isErrno(error, "EEXIST")) {
    return problem("state_dir_read_only", `${path} is not a directory. Remove what is there, ${elsewhere}.`);
  }
  return error instanceof Error ? error : new Error(String(error));
}
