// The agent's current identity, trust, profile and address from the state directory, and the client that uses them. What
// the server offers is stored beside them until it is adopted (trial-runs.ts). A join beside the running agent, or a
// restored file, is picked up at the next attempt after a rejection.

import { statSync } from "node:fs";
import type { LookupFunction } from "node:net";
import type { VerifierKeyring } from "@holdfast/kit/detached-jws";
import { UsageError } from "@holdfast/kit/settings";
import { type Offer, takeOffer } from "../identity/accept-trust.ts";
import {
  type AgentFile,
  nodeApiUrl,
  readAgentFile,
  verifierKeyring,
  withProfile,
  writeAgentFile,
} from "../identity/agent-file.ts";
import { isSame, withoutPresent, writeCandidates } from "../identity/candidates.ts";
import { type Identity, writeIdentity } from "../identity/identity-file.ts";
import { readWay } from "../identity/read-way.ts";
import { isOfAnotherNode, isReplaced, withRecovered, writeRecovered } from "../identity/recovered.ts";
import { HostProblem, type StateFiles } from "../identity/state-directory.ts";
import { type Candidates, isSecure, type Way } from "../identity/trials.ts";
import { writeTrust } from "../identity/trust-file.ts";
import {
  addRecoveryRoots,
  pinIfMissing,
  type RecoveryPath,
  type RecoverySettings,
  recoveryRoots,
  recoveryUrls,
} from "../recovery/path.ts";
import type { Recovered } from "../recovery/state.ts";
import { type Credentials, createLinkClient, type LinkClient, type LinkKind, type LinkTarget } from "./client.ts";
import { lookupBy } from "./lookup.ts";
import type { LinkInUse } from "./stream/transport.ts";
import type { LinkTimes } from "./times.ts";

export type Session = {
  readonly nodeId: string;
  apiUrl(): string;
  agent(): AgentFile;
  verifiers(): VerifierKeyring;
  /** Throws a HostProblem while this host has no usable identity. */
  client(): LinkClient;
  /** How the client is connected; undefined before its first request. */
  link(): LinkInUse | undefined;
  /** Undefined until it could be read. */
  identity(): Identity | undefined;
  /** In force. Throws a HostProblem while this host has no usable identity. */
  present(): Way;
  candidates(): Candidates;
  /** A client with other connection settings, for one request; the caller closes it. */
  clientOver(way: Way): LinkClient;
  /** Stored on disk beside what is in force. */
  offer(candidates: Candidates): void;
  /** In force from the next connection on, and after a restart. */
  adopt(change: Partial<Way>): void;
  /** For another connection than the client's. Throws a HostProblem while this host has no usable identity. */
  credentials(): Credentials;
  readonly lookup: LookupFunction;
  /** From the response to a heartbeat. Returns what was refused, and why. */
  learn(offer: Offer): string[];
  /** In force from the next connection on, also while it cannot be written. */
  recover(recovered: Recovered): void;
  /** Retries what could not be written. Returns whether a restart would find it in the files. */
  storeRecovered(): boolean;
  /** In force, and not in the files yet. */
  unsaved(): Recovered | undefined;
  /** Throws a HostProblem when there is none that can be used. */
  recoveryPath(): RecoveryPath;
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
  /** `poll`: never opens a stream. */
  link?: LinkKind;
  times?: Partial<LinkTimes> | undefined;
  /** From a recovery that could not be written to the files. */
  recovered?: Recovered | undefined;
  recovery?: RecoverySettings;
}): Session {
  const { files, instanceId, bootId, times } = options;
  let agent = pinIfPossible(files, readKnownAgent(files));
  const nodeId = agent.node_id;
  let unsaved = options.recovered && isReplaced(files, options.recovered) ? undefined : options.recovered;
  if (unsaved) agent = withRecovered(agent, unsaved);
  secureUrl(nodeApiUrl(agent, options.apiUrl));
  let keyring = verifierKeyring(agent.verifiers);
  let open: { client: LinkClient; way: Way; candidates: Candidates } | undefined;
  let seen = fingerprint(files);
  const lookup = lookupBy(() => agent.profile.resolve ?? {});
  const apiUrl = () => nodeApiUrl(agent, options.apiUrl);

  const clientOf = (way: Way, through: LookupFunction, link: LinkKind) =>
    createLinkClient({ ...{ nodeId, instanceId, bootId, link, times }, ...targetOf(way), lookup: through });

  const connect = () => {
    const { way, candidates } = unsaved
      ? { way: wayOf(unsaved), candidates: {} }
      : readWay(files, agent, options.apiUrl);
    if (way.identity.nodeId !== nodeId) {
      throw new HostProblem(
        "identity_key_missing",
        `${files.identity} is of the node ${way.identity.nodeId}, and this agent runs as ${nodeId}. Restart the agent.`,
      );
    }
    // A candidate that equals what is in force, after a crash between adopting and cleaning up, is removed by the next response.
    open = { way, client: clientOf(way, lookup, options.link ?? "stream"), candidates };
    return open;
  };

  const wayOf = ({ identity, trust }: Recovered): Way => ({
    ...{ identity, roots: trust.bundle.roots, profile: agent.profile, apiUrl: apiUrl() },
  });

  const keep = (candidates: Candidates) => {
    const here = open ?? connect();
    const left = withoutPresent(candidates, here.way);
    const same = isSame(left, here.candidates);
    here.candidates = left;
    if (!same) writeCandidates(files, left);
  };

  const storeRecovered = () => {
    if (!unsaved) return true;
    try {
      // Whoever joined again since then has a newer identity in the files.
      if (!isReplaced(files, unsaved)) writeRecovered(files, agent, unsaved);
    } catch {
      return false;
    }
    unsaved = undefined;
    seen = fingerprint(files);
    return true;
  };

  return {
    nodeId,
    apiUrl,
    agent: () => agent,
    verifiers: () => keyring,
    client: () => (open ?? connect()).client,
    link: () => open?.client.used(),
    identity: () => open?.way.identity,
    present: () => (open ?? connect()).way,
    candidates: () => open?.candidates ?? {},
    clientOver: (way) =>
      clientOf(
        way,
        lookupBy(() => way.profile.resolve ?? {}),
        "poll",
      ),
    offer: (candidates) => keep({ ...(open ?? connect()).candidates, ...candidates }),
    adopt(change) {
      const here = open ?? connect();
      storeRecovered();
      const changed = change.profile || change.apiUrl ? withProfile(agent, change) : agent;
      if (changed !== agent) writeAgentFile(files, changed);
      // First: after a crash, what is in force is not adopted again.
      if (change.roots) addRecoveryRoots(files, change.roots);
      if (change.roots) writeTrust(files, change.roots);
      if (change.identity) writeIdentity(files, change.identity);
      agent = changed;
      here.way = { ...here.way, ...change };
      here.client.use(targetOf(here.way));
      seen = fingerprint(files);
      keep(here.candidates);
    },
    credentials: () => credentialsOf((open ?? connect()).way),
    lookup,
    learn(offer) {
      const { way, candidates } = open ?? connect();
      const taken = takeOffer({ agent, way, candidates }, offer);
      const changed = taken.agent !== agent;
      agent = taken.agent;
      if (changed) keyring = verifierKeyring(agent.verifiers);
      // Candidates first: a bundle whose version is known already would not be offered again.
      keep(taken.candidates);
      if (changed) writeAgentFile(files, agent);
      return taken.refused;
    },
    recover(recovered) {
      unsaved = recovered;
      agent = withRecovered(agent, recovered);
      keyring = verifierKeyring(agent.verifiers);
      const way = wayOf(recovered);
      if (open) {
        open.way = way;
        open.candidates = {};
        open.client.use(targetOf(way));
      } else connect();
    },
    storeRecovered,
    unsaved: () => unsaved,
    recoveryPath() {
      if (isOfAnotherNode(files, nodeId)) throw otherNode(files, nodeId);
      const settings = options.recovery ?? {};
      const roots = recoveryRoots(files, () => (open ?? connect()).way.roots, settings.caPath);
      return { urls: recoveryUrls(agent, apiUrl(), settings.apiUrl), roots, lookup };
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

export function targetOf(way: Way): LinkTarget {
  return { apiUrl: way.apiUrl, credentials: credentialsOf(way) };
}

function credentialsOf({ identity, roots }: Way): Credentials {
  const { keyPem, chainPem } = identity;
  return { keyPem, chainPem, roots };
}

/** A file system that cannot be written changes nothing: what is in force is used for recovery too. */
function pinIfPossible(files: StateFiles, agent: AgentFile): AgentFile {
  try {
    return pinIfMissing(files, agent);
  } catch {
    return agent;
  }
}

function otherNode(files: StateFiles, nodeId: string): HostProblem {
  return new HostProblem(
    "identity_key_missing",
    `${files.agent} is of another node, and this agent runs as ${nodeId}. Restart the agent.`,
  );
}

/** Throws a HostProblem if this machine is not a node. */
export function readKnownAgent(files: StateFiles): AgentFile {
  const agent = readAgentFile(files);
  if (agent) return agent;
  throw new HostProblem(
    "identity_key_missing",
    `This machine is not a node yet: there is nothing in ${files.directory}. ` +
      "Join it first, with the command that `holdfast node token create` prints on the server.",
  );
}

/** For a machine that joined through the public API of a server that publishes no node-facing address. */
function secureUrl(url: string): void {
  if (isSecure(url)) return;
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
