// agent.json: which node this is and the trust it has accepted: its profile and the keys that tasks
// are signed with. None of it is secret; all of it is needed to start without the server.

import type { EnvironmentProfile, TrustVersions, VerifierKeys } from "@holdfast/contracts/node/trust";
import { keyringOf, type VerifierKeyring } from "@holdfast/kit/detached-jws";
import { readFileIfPresent, writeFileDurably } from "@holdfast/kit/files";
import { explainWriteError, HostProblem, type StateFiles } from "./state-directory.ts";

export type AgentFile = {
  node_id: string;
  org_id: string;
  node_name: string;
  /** Where it joined; the profile's `node_api` is used when it names one. */
  api_url: string;
  /** The address in use, while it is not the profile's, which has not worked from this host yet. */
  node_api?: string;
  /** Where it gets a new identity, pinned at the join. Missing in files of agents from before recovery. */
  recovery_api_url?: string;
  profile: EnvironmentProfile;
  verifiers: VerifierKeys;
  /** Of `verifiers`, and of the newest trust bundle that was accepted. Missing in files of agents from before versions. */
  trust?: TrustVersions;
};

/** Undefined: this machine has never been a node. */
export function readAgentFile(files: StateFiles): AgentFile | undefined {
  let text: string | undefined;
  try {
    text = readFileIfPresent(files.agent);
  } catch (error) {
    throw explainWriteError(error, files.agent);
  }
  if (text === undefined) return undefined;
  const found = parse(text);
  if (!isAgentFile(found)) {
    throw new HostProblem(
      "identity_key_missing",
      `${files.agent} does not hold what the agent wrote there. Restore it, or join again with a token made for ` +
        "this node: `holdfast node token create --node <id>`.",
    );
  }
  return found;
}

export function writeAgentFile(files: StateFiles, content: AgentFile): void {
  try {
    writeFileDurably(files.agent, `${JSON.stringify(content, null, 2)}\n`, 0o600);
  } catch (error) {
    throw explainWriteError(error, files.directory);
  }
}

export function trustVersions({ trust }: AgentFile): TrustVersions {
  return trust ?? { key_set: 0, bundle: 0 };
}

/** The node-facing address in force. */
export function nodeApiUrl(agent: AgentFile, override: string | undefined): string {
  return override ?? agent.node_api ?? agent.profile.endpoints["node_api"] ?? agent.api_url;
}

/** Replaces profile or address. A new profile does not change the address until the new one has worked. */
export function withProfile(
  agent: AgentFile,
  {
    profile = agent.profile,
    apiUrl = nodeApiUrl(agent, undefined),
  }: { profile?: EnvironmentProfile; apiUrl?: string },
): AgentFile {
  const { node_api: _, ...others } = agent;
  const published = profile.endpoints["node_api"];
  return { ...others, profile, ...(apiUrl === published ? {} : { node_api: apiUrl }) };
}

export function verifierKeyring({ keys }: VerifierKeys): VerifierKeyring {
  return keyringOf(keys);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isAgentFile(value: unknown): value is AgentFile {
  const { node_id, api_url, profile, verifiers } = (value ?? {}) as Partial<AgentFile>;
  return (
    typeof node_id === "string" &&
    typeof api_url === "string" &&
    typeof profile?.endpoints === "object" &&
    Array.isArray(verifiers?.keys)
  );
}
