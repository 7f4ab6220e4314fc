// Ends the trial of a bundle: the new set takes the place of the previous one, or the previous one stays. Both may be
// interrupted anywhere and repeated: the staged bundle is removed last.

import { trustInFile } from "../identity/accept-trust.ts";
import { type AgentFile, withProfile } from "../identity/agent-file.ts";
import { explainWriteError, type StateFiles } from "../identity/state-directory.ts";
import { recoveryUrlAtJoin } from "../recovery/path.ts";
import { emptyState } from "../recovery/state.ts";
import { openRecoveryFile } from "../recovery/state-file.ts";
import { installFiles, restoreFiles } from "./host-files.ts";
import { type Disk, disk, readStaged, recordPast, type Staged, stagedPath, writeStaged } from "./staged.ts";

/** From here on the new set counts, whatever is interrupted. */
export function commit(files: StateFiles, staged: Staged, apiUrl: string, to: Disk = disk): Staged {
  const committed = { ...staged, committed: { apiUrl } };
  writeStaged(files, committed, to);
  return committed;
}

/** At every start of the agent, before it reads the files of the node: completes what was committed. */
export function finishInterrupted(files: StateFiles, to: Disk = disk): void {
  const staged = readStaged(files);
  if (staged?.committed) finish(files, staged, to);
  else if (staged) installFiles(staged.files, to);
}

/** Writes the new set to the files of the node. */
export function finish(files: StateFiles, staged: Staged, to: Disk = disk): void {
  const { bundle, key, issued, committed } = staged;
  if (!key || !issued || !committed) throw new Error("a bundle that has not worked cannot replace anything");
  const { node, api_url } = bundle.content;
  const { trust } = issued;
  const agent: AgentFile = withProfile(
    { node_id: node.id, org_id: node.org_id, node_name: node.name, api_url, ...trustInFile(trust) },
    { profile: trust.profile, apiUrl: committed.apiUrl },
  );
  agent.recovery_api_url = recoveryUrlAtJoin(agent);
  const roots = trust.bundle.roots.map((root) => `${root.trim()}\n`).join("");
  try {
    to.write(files.trust, roots, 0o600);
    to.write(files.recoveryRoots, roots, 0o600);
    to.write(files.agent, `${JSON.stringify(agent, null, 2)}\n`, 0o600);
    to.write(files.identity, key + issued.chain, 0o600);
    to.remove(files.next);
    to.remove(files.enrolling);
    keepToken(files, staged);
    recordPast(files, staged, null, to);
    to.remove(stagedPath(files));
  } catch (error) {
    throw explainWriteError(error, files.directory);
  }
}

/** Nothing of the previous identity is left in the state of recovery. */
function keepToken(files: StateFiles, { bundle, issued }: Staged): void {
  const { id } = bundle.content.node;
  const store = openRecoveryFile(files, id);
  try {
    store.write({ ...emptyState(id), token: issued?.token ?? null });
  } finally {
    store.close();
  }
}

/** Only before it has worked: the files of the node were not changed. */
export function revert(files: StateFiles, staged: Staged, why: string, to: Disk = disk): void {
  if (staged.committed) throw new Error("a bundle that has worked is replaced by another bundle only");
  try {
    restoreFiles(staged.files, to);
    recordPast(files, staged, why, to);
    to.remove(stagedPath(files));
  } catch (error) {
    throw explainWriteError(error, files.directory);
  }
}
