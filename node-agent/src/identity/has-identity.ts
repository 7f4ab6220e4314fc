// Whether this host is a node with a complete identity. Without one, only joining again helps. A disk that cannot be
// read is not treated as a missing identity, because joining would not help there either.

import { recoveredIn } from "../recovery/state.ts";
import { readRecoveryFile } from "../recovery/state-file.ts";
import { readAgentFile } from "./agent-file.ts";
import { readWay } from "./read-way.ts";
import { HostProblem, stateFiles } from "./state-directory.ts";

export function hasIdentity(stateDir: string): boolean {
  const files = stateFiles(stateDir);
  try {
    const agent = readAgentFile(files);
    if (!agent) return false;
    if (recoveredIn(readRecoveryFile(files, agent.node_id))) return true;
    return readWay(files, agent, undefined).way.identity.nodeId === agent.node_id;
  } catch (error) {
    if (!(error instanceof HostProblem)) throw error;
    return error.reason !== "identity_key_missing" && error.reason !== "trust_bundle_invalid";
  }
}
