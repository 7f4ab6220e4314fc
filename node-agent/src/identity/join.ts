// Makes this machine a node: exchanges an enrollment token of either kind for an identity and stores it. The key is
// created and stored before the first request, so that a retry after a lost response is the same request and cannot
// create a second node.

import { createPrivateKey, type KeyObject, randomUUID } from "node:crypto";
import type { HostFacts } from "@holdfast/contracts/node/protocol";
import { newPrivateKey, privateKeyPem } from "@holdfast/kit/certificate-request";
import { readFileIfPresent, removeIfPresent, writeFileDurably } from "@holdfast/kit/files";
import { UsageError } from "@holdfast/kit/settings";
import { stagedPath } from "../bundle/staged.ts";
import { openDiagnostics } from "../diagnostics/ring.ts";
import { runningAgent } from "../journal/lock.ts";
import type { Log } from "../log.ts";
import { isLoopbackName } from "../loopback.ts";
import { pinRecoveryRoots, recoveryUrlAtJoin } from "../recovery/path.ts";
import { openRecoveryFile } from "../recovery/state-file.ts";
import { trustInFile } from "./accept-trust.ts";
import { type AgentFile, nodeApiUrl, readAgentFile, writeAgentFile } from "./agent-file.ts";
import { enroll, fetchRoot, JoinFailure } from "./enroll.ts";
import { parseEnrollmentToken } from "./enrollment-token.ts";
import { writeIdentity } from "./identity-file.ts";
import { explainWriteError, prepareStateDirectory, type StateFiles } from "./state-directory.ts";
import { writeTrust } from "./trust-file.ts";

export { JoinFailure };

export type JoinOptions = {
  token: string;
  /** The server's address, without a path. */
  apiUrl: string;
  stateDir: string;
  nodeName?: string;
  /** Become a new node, even if this machine is one already. */
  force?: boolean;
  facts: HostFacts;
  /** How often each request is tried without a response. */
  attempts?: number;
  /** Called with every failure that is followed by another attempt. */
  log?: Log;
};

export type Joined = { nodeId: string; orgId: string; nodeName: string; nodeApiUrl: string; rekeyed: boolean };

export async function join(options: JoinOptions): Promise<Joined> {
  const token = parseEnrollmentToken(options.token);
  const origin = checkedOrigin(options.apiUrl);
  const files = prepareStateDirectory(options.stateDir);
  const before = options.force ? undefined : readAgentFile(files);
  const onRetry = (failure: JoinFailure) => recordRetry(files, failure, options.log);
  const call = { origin, attempts: options.attempts ?? 4, onRetry };
  const ask = (key: KeyObject, root: string) =>
    enroll(call, root, {
      token: token.text,
      key,
      nodeId: before?.node_id,
      nodeName: options.nodeName,
      facts: options.facts,
    });

  const kept = enrollingKey(files);
  const root = await fetchRoot(call, token.rootSha256);
  const { identity, trust, answer } = await ask(kept, root).catch((error: unknown) => {
    if (!(error instanceof JoinFailure && error.code === "csr_invalid")) throw error;
    // The token was used before: its response was lost, and the certificate in it has expired since.
    removeIfPresent(files.enrolling);
    return ask(enrollingKey(files), root);
  });
  if (before && before.node_id !== identity.nodeId) {
    throw new JoinFailure("refused", "already_a_node", {
      message: `This machine is already the node ${before.node_name} (${before.node_id}), and this token is not for it.`,
      nextStep:
        "Use a token made for it (`holdfast node token create --node <id>`), or --force to become a new node with this one.",
    });
  }
  const agent: AgentFile = {
    node_id: identity.nodeId,
    org_id: answer.org_id,
    node_name: answer.node_name,
    api_url: origin,
    ...trustInFile(trust),
  };
  agent.recovery_api_url = recoveryUrlAtJoin(agent);
  removeIfPresent(files.next);
  // A bundle that was being tried is of the identity before this one.
  removeIfPresent(stagedPath(files));
  writeTrust(files, trust.bundle.roots);
  pinRecoveryRoots(files, trust.bundle.roots);
  writeAgentFile(files, agent);
  writeIdentity(files, identity);
  removeIfPresent(files.enrolling);
  openRecoveryFile(files, agent.node_id).close();
  return {
    nodeId: identity.nodeId,
    orgId: answer.org_id,
    nodeName: answer.node_name,
    nodeApiUrl: nodeApiUrl(agent, undefined),
    rekeyed: before !== undefined,
  };
}

/** Records it in the host's history, unless a running agent writes that, and in the log. */
function recordRetry({ directory }: StateFiles, failure: JoinFailure, log: Log = silent): void {
  const { reason, message, correlationId } = failure;
  if (runningAgent(directory) !== undefined) {
    log.warn(reason, { reason, detail: message });
    return;
  }
  const diagnostics = openDiagnostics(directory, { log, instanceId: randomUUID() });
  diagnostics.record(reason, message, correlationId);
  diagnostics.close();
}

const silent: Log = { debug() {}, info() {}, warn() {}, error() {} };

/** Without TLS anyone on the network could impersonate the server, so plain HTTP is only allowed on this machine. */
export function checkedOrigin(text: string): string {
  if (!URL.canParse(text)) throw new UsageError(`--api is ${JSON.stringify(text)}, which is not an address.`);
  const url = new URL(text);
  if (url.protocol !== "https:" && url.protocol !== "http:") {
    throw new UsageError(`--api must be an https:// address; ${url.protocol}// is none.`);
  }
  if (url.protocol === "http:" && !isLoopbackName(url.hostname)) {
    throw new UsageError(
      `--api is http://${url.host}, which would send the token through the network in clear text. ` +
        "Use the server's https:// address; http:// is for loopback only.",
    );
  }
  return url.origin;
}

/** The key of an unfinished join, or a new one, on disk before anything is sent. */
function enrollingKey(files: StateFiles): KeyObject {
  try {
    const kept = readFileIfPresent(files.enrolling);
    if (kept !== undefined) return createPrivateKey(kept);
  } catch {
    // Damaged, so it was never used: it is written as a whole before the first request.
  }
  const key = newPrivateKey();
  try {
    writeFileDurably(files.enrolling, privateKeyPem(key), 0o600);
  } catch (error) {
    throw explainWriteError(error, files.directory);
  }
  return key;
}
