// Whether this host is a node and has all that it needs to say so. Without, only joining again helps; a
// disk that cannot be read does not count, because joining would not help there either.

import { readAgentFile } from "./agent-file.ts";
import { readIdentity } from "./identity-file.ts";
import { HostProblem, stateFiles } from "./state-directory.ts";
import { readTrust } from "./trust-file.ts";

export function hasIdentity(stateDir: string): boolean {
  const files = stateFiles(stateDir);
  try {
    const agent = readAgentFile(files);
    if (!agent) return false;
    readTrust(files, agent.profile.ca_sha256);
    return readIdentity(files).nodeId === agent.node_id;
  } catch (error) {
    if (!(error instanceof HostProblem)) throw error;
    return error.reason !== "identity_key_missing" && error.reason !== "trust_bundle_invalid";
  }
}
