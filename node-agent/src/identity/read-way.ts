// Reads the connection settings in force and the candidates beside them. What cannot be read is taken from a candidate,
// which a crash may have left half adopted; that adoption is then completed.

import { type AgentFile, nodeApiUrl } from "./agent-file.ts";
import { readCandidates } from "./candidates.ts";
import { readIdentity, writeIdentity } from "./identity-file.ts";
import type { StateFiles } from "./state-directory.ts";
import { type Candidates, contradiction, type Way } from "./trials.ts";
import { readTrust, writeTrust } from "./trust-file.ts";

/** Throws a HostProblem when this host has no usable identity. */
export function readWay(
  files: StateFiles,
  agent: AgentFile,
  fixedUrl: string | undefined,
): { way: Way; candidates: Candidates } {
  const candidates = readCandidates(files, agent.node_id);
  const { profile } = agent;
  const identity = orElse(
    () => readIdentity(files),
    candidates.identity,
    (one) => writeIdentity(files, one),
  );
  const known = { identity, profile, apiUrl: nodeApiUrl(agent, fixedUrl) };
  const fits = candidates.roots && contradiction({ ...known, roots: candidates.roots }) === undefined;
  const roots = orElse<readonly string[]>(
    () => readTrust(files, profile.ca_sha256),
    fits ? candidates.roots : undefined,
    (all) => writeTrust(files, all),
  );
  return { way: { ...known, roots }, candidates };
}

function orElse<T>(read: () => T, offered: T | undefined, write: (value: T) => void): T {
  try {
    return read();
  } catch (error) {
    if (offered === undefined) throw error;
    write(offered);
    return offered;
  }
}
