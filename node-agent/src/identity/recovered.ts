// A recovered identity, and the trust that came with it, in the ordinary files of the node. It replaces what is in force
// without a trial: that does not work any more, and the server has ended its certificate.

import { removeIfPresent } from "@holdfast/kit/files";
import { addRecoveryRoots } from "../recovery/path.ts";
import type { Recovered } from "../recovery/state.ts";
import { trustInFile } from "./accept-trust.ts";
import { type AgentFile, nodeApiUrl, readAgentFile, withProfile, writeAgentFile } from "./agent-file.ts";
import { readIdentity, writeIdentity } from "./identity-file.ts";
import type { StateFiles } from "./state-directory.ts";
import { writeTrust } from "./trust-file.ts";

/** The address in use stays: others are tried while it fails (trials.ts). */
export function withRecovered(agent: AgentFile, { trust }: Recovered): AgentFile {
  const { profile, ...others } = trustInFile(trust);
  return withProfile({ ...agent, ...others }, { profile, apiUrl: nodeApiUrl(agent, undefined) });
}

/** Throws a HostProblem. May be repeated: until all are written, a restart takes it from recovery.bin. */
export function writeRecovered(files: StateFiles, agent: AgentFile, { identity, trust }: Recovered): void {
  writeTrust(files, trust.bundle.roots);
  writeAgentFile(files, agent);
  writeIdentity(files, identity);
  removeIfPresent(files.next);
  addRecoveryRoots(files, trust.bundle.roots);
}

/** The files have a newer identity, or one of another node: this machine has joined since then. */
export function isReplaced(files: StateFiles, { identity }: Recovered): boolean {
  if (isOfAnotherNode(files, identity.nodeId)) return true;
  try {
    const inFile = readIdentity(files);
    return inFile.nodeId !== identity.nodeId || inFile.certificate.notBefore > identity.certificate.notBefore;
  } catch {
    return false;
  }
}

/** This machine has joined as another node, beside the running agent. */
export function isOfAnotherNode(files: StateFiles, nodeId: string): boolean {
  try {
    return (readAgentFile(files)?.node_id ?? nodeId) !== nodeId;
  } catch {
    return false;
  }
}
