// Who this agent is towards the server at the moment: identity and trust from the state directory,
// and the client made of them. A join beside the running agent, or a file that was restored, is
// taken up at the next attempt after a rejection.

import { statSync } from "node:fs";
import type { LookupFunction } from "node:net";
import type { EnvironmentProfile, VerifierKeys } from "@holdfast/contracts/node-protocol";
import type { VerifierKeyring } from "@holdfast/kit/detached-jws";
import { UsageError } from "@holdfast/kit/settings";
import {
  type AgentFile,
  nodeApiUrl,
  readAgentFile,
  verifierKeyring,
  writeAgentFile,
} from "../identity/agent-file.ts";
import { type Identity, readIdentity } from "../identity/identity-file.ts";
import { HostProblem, type StateFiles } from "../identity/state-directory.ts";
import { readTrust } from "../identity/trust-file.ts";
import { type Credentials, createLinkClient, type LinkClient } from "./client.ts";
import { lookupBy } from "./lookup.ts";

export type Session = {
  readonly nodeId: string;
  readonly apiUrl: string;
  agent(): AgentFile;
  verifiers(): VerifierKeyring;
  /** Throws a HostProblem while this host has no usable identity. */
  client(): LinkClient;
  /** Undefined until it could be read. */
  identity(): Identity | undefined;
  roots(): readonly string[];
  /** For another connection than the client's. Throws a HostProblem while this host has no usable identity. */
  credentials(): Credentials;
  readonly lookup: LookupFunction;
  /** From the next connection on. */
  renewed(identity: Identity, roots: readonly string[]): void;
  learn(news: { verifiers?: VerifierKeys; profile?: EnvironmentProfile }): void;
  /** After a rejection: whether the files have changed since they were read, and are read again. */
  reconsider(): boolean;
  close(): void;
};

export function openSession(options: {
  files: StateFiles;
  /** Undefined: as the profile says. */
  apiUrl: string | undefined;
  instanceId: string;
  bootId: string;
}): Session {
  const { files } = options;
  let agent = readKnownAgent(files);
  const nodeId = agent.node_id;
  const apiUrl = secureUrl(nodeApiUrl(agent, options.apiUrl));
  let keyring = verifierKeyring(agent.verifiers);
  let open: { client: LinkClient; identity: Identity; roots: readonly string[] } | undefined;
  let seen = fingerprint(files);
  const lookup = lookupBy(() => agent.profile.resolve ?? {});

  const connect = () => {
    const identity = readIdentity(files);
    if (identity.nodeId !== nodeId) {
      throw new HostProblem(
        "identity_key_missing",
        `${files.identity} is of the node ${identity.nodeId}, and this agent runs as ${nodeId}. Restart the agent.`,
      );
    }
    const roots = readTrust(files, agent.profile.ca_sha256);
    const credentials = { ...identity, roots };
    const { instanceId, bootId } = options;
    const client = createLinkClient({ apiUrl, nodeId, instanceId, bootId, credentials, lookup });
    open = { identity, roots, client };
    return open;
  };

  return {
    nodeId,
    apiUrl,
    agent: () => agent,
    verifiers: () => keyring,
    client: () => (open ?? connect()).client,
    identity: () => open?.identity,
    roots: () => open?.roots ?? [],
    credentials() {
      const { identity, roots } = open ?? connect();
      return { ...identity, roots };
    },
    lookup,
    renewed(identity, roots) {
      if (!open) return;
      open.client.use({ ...identity, roots });
      open = { client: open.client, identity, roots };
      seen = fingerprint(files);
    },
    learn({ verifiers, profile }) {
      agent = { ...agent, verifiers: verifiers ?? agent.verifiers, profile: profile ?? agent.profile };
      keyring = verifierKeyring(agent.verifiers);
      writeAgentFile(files, agent);
    },
    reconsider() {
      const now = fingerprint(files);
      if (now === seen) return false;
      seen = now;
      open?.client.close();
      open = undefined;
      agent = readAgentFile(files) ?? agent;
      keyring = verifierKeyring(agent.verifiers);
      return true;
    },
    close() {
      open?.client.close();
    },
  };
}

function readKnownAgent(files: StateFiles): AgentFile {
  const agent = readAgentFile(files);
  if (agent) return agent;
  throw new HostProblem(
    "identity_key_missing",
    `This machine is not a node yet: there is nothing in ${files.directory}. ` +
      "Join it first, with the command that `holdfast node token create` prints on the server.",
  );
}

/** A machine that joined through the public API of a server that tells no node-facing address. */
function secureUrl(url: string): string {
  if (url.startsWith("https://")) return url;
  throw new UsageError(
    `The node's profile names no address of the node-facing API, and ${url} is none: it speaks https only. ` +
      "Set HOLDFAST_NODE_API_URL, or join again through the right address.",
  );
}

/** Files are replaced as a whole, so a new one has a new inode. */
function fingerprint(files: StateFiles): string {
  return [files.identity, files.trust]
    .map((path) => {
      const found = statSync(path, { throwIfNoEntry: false });
      return found ? `${found.ino}:${found.mtimeMs}:${found.size}` : "none";
    })
    .join();
}
