// Exchanges an enrollment token of either kind for a node identity. Nothing secret is sent before the server has
// shown the root certificate whose SHA-256 stands in the token, and proved over TLS that it leads to
// it. The key is made and kept before the first request, so that a retry after a lost answer is the
// same request and can make no second node.

import { createPrivateKey, type KeyObject } from "node:crypto";
import type { RequestOptions } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import type { DiagnosticReason } from "@holdfast/contracts/diagnostics";
import type {
  EnvironmentProfile,
  HostFacts,
  IssuedCertificate,
  VerifierKeys,
} from "@holdfast/contracts/node-protocol";
import { backoffDelay } from "@holdfast/kit/backoff";
import { certificateRequest, newPrivateKey, privateKeyPem } from "@holdfast/kit/certificate-request";
import { readFileIfPresent, removeIfPresent, writeFileDurably } from "@holdfast/kit/files";
import { UsageError } from "@holdfast/kit/settings";
import { checkApiIdentity } from "../link/api-identity.ts";
import { exchange } from "../link/exchange.ts";
import { classify, failureOf, LinkFailure } from "../link/failures.ts";
import { isLoopbackName } from "../loopback.ts";
import { type AgentFile, nodeApiUrl, readAgentFile, writeAgentFile } from "./agent-file.ts";
import { parseEnrollmentToken } from "./enrollment-token.ts";
import { parseIdentity, writeIdentity } from "./identity-file.ts";
import { checkChain } from "./renew.ts";
import { explainWriteError, prepareStateDirectory, type StateFiles } from "./state-directory.ts";
import { sha256OfRoot, writeTrust } from "./trust-file.ts";

export type JoinOptions = {
  token: string;
  /** The server's address, without a path. */
  apiUrl: string;
  stateDir: string;
  nodeName?: string;
  /** Become a new node, even if this machine is one already. */
  force?: boolean;
  facts: HostFacts;
  /** How often each request is tried while nothing answers. */
  attempts?: number;
};

export type Joined = { nodeId: string; orgId: string; nodeName: string; nodeApiUrl: string; rekeyed: boolean };

/** The join did not happen: `unreachable` when nobody answered, `refused` when somebody or something said no. */
export class JoinFailure extends Error {
  override name = "JoinFailure";
  readonly kind: "refused" | "unreachable";
  readonly code: string;
  readonly nextStep: string;
  /** How the agent's own history calls it. */
  readonly reason: DiagnosticReason;
  /** The server asked for this much patience. */
  readonly retryAfterMs: number | undefined;
  readonly correlationId: string | undefined;

  constructor(
    kind: "refused" | "unreachable",
    code: string,
    told: { message: string; nextStep: string } & Partial<
      Pick<JoinFailure, "reason" | "retryAfterMs" | "correlationId">
    >,
  ) {
    super(told.message);
    this.kind = kind;
    this.code = code;
    this.nextStep = told.nextStep;
    this.reason = told.reason ?? "recovery_enrollment_blocked";
    this.retryAfterMs = told.retryAfterMs;
    this.correlationId = told.correlationId;
  }
}

type EnrollAnswer = IssuedCertificate & {
  node_id: string;
  org_id: string;
  node_name: string;
  trust_bundle: string[];
  verifiers: VerifierKeys;
  profile: EnvironmentProfile;
};

const TIMEOUT_MS = 15_000;

export async function join(options: JoinOptions): Promise<Joined> {
  const token = parseEnrollmentToken(options.token);
  const origin = checkedOrigin(options.apiUrl);
  const files = prepareStateDirectory(options.stateDir);
  const before = options.force ? undefined : readAgentFile(files);
  const call = { origin, attempts: options.attempts ?? 4 };
  const ask = async (key: KeyObject, root: string) => ({
    key,
    answer: await enroll(call, root, {
      token: token.text,
      csr: certificateRequest(key, options.nodeName ?? options.facts.hostname),
      node_id: before?.node_id,
      node_name: options.nodeName,
      facts: options.facts,
    }),
  });

  const kept = enrollingKey(files);
  const root = await fetchRoot(call, token.rootSha256);
  const { key, answer } = await ask(kept, root).catch((error: unknown) => {
    if (!(error instanceof JoinFailure && error.code === "csr_invalid")) throw error;
    // It was used before: its answer was lost, and the certificate in it has ended since.
    removeIfPresent(files.enrolling);
    return ask(enrollingKey(files), root);
  });
  const identity = checkedIdentity(answer, key, root);
  if (before && before.node_id !== identity.nodeId) {
    throw new JoinFailure("refused", "already_a_node", {
      message: `This machine is the node ${before.node_name} (${before.node_id}) already, and this token is not for it.`,
      nextStep:
        "Use a token made for it (`holdfast node token create --node <id>`), or --force to become a new node with this one.",
    });
  }
  const agent: AgentFile = {
    node_id: identity.nodeId,
    org_id: answer.org_id,
    node_name: answer.node_name,
    api_url: origin,
    profile: answer.profile,
    verifiers: answer.verifiers,
  };
  writeTrust(files, withRoot(answer.trust_bundle, root));
  writeAgentFile(files, agent);
  writeIdentity(files, identity);
  removeIfPresent(files.enrolling);
  return {
    nodeId: identity.nodeId,
    orgId: answer.org_id,
    nodeName: answer.node_name,
    nodeApiUrl: nodeApiUrl(agent, undefined),
    rekeyed: before !== undefined,
  };
}

/** In clear text anybody on the way could put their own server in its place, so only within this machine. */
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

/** That of a join that did not finish, or a new one, on disk before anything is sent. */
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

type Call = { origin: string; attempts: number };

async function fetchRoot(call: Call, expectedSha256: string): Promise<string> {
  // Whoever answers is not believed: what counts is whether the certificate is the one in the token.
  const via = { agent: false as const, rejectUnauthorized: false };
  const { roots } = await ask<{ roots: string[] }>(call, { method: "GET", path: "/v1/trust-bundle", via });
  const found = Array.isArray(roots) ? roots.find((root) => digestOf(root) === expectedSha256) : undefined;
  if (found !== undefined) return found;
  throw new JoinFailure("refused", "ca_mismatch", {
    reason: "server_tls_untrusted",
    message:
      `The server at ${call.origin} shows another root certificate than the one this token was made under; ` +
      "nothing was sent to it. Either the address leads to another installation, or somebody stands in between.",
    nextStep: "Compare the address with the one that `holdfast node token create` printed.",
  });
}

/** Whom the host trusts beside that root does not count: a proxy that opens TLS would read the token. */
function enroll(call: Call, root: string, body: unknown): Promise<EnrollAnswer> {
  const via = { agent: false as const, ca: [root], checkServerIdentity: checkApiIdentity };
  return ask<EnrollAnswer>(call, { method: "POST", path: "/v1/enroll", body, via });
}

async function ask<T>(
  { origin, attempts }: Call,
  request: { method: "GET" | "POST"; path: string; body?: unknown; via: RequestOptions },
): Promise<T> {
  const { path, ...rest } = request;
  for (let attempt = 0; ; attempt += 1) {
    try {
      return (await exchange<T>({ ...rest, url: new URL(path, origin), timeoutMs: TIMEOUT_MS })).body;
    } catch (error) {
      const told = joinFailure(error, origin);
      if (told.kind === "refused" || attempt + 1 >= attempts) throw told;
      await sleep(backoffDelay({ firstMs: 300, maxMs: 3_000 }, attempt));
    }
  }
}

function joinFailure(error: unknown, origin: string): JoinFailure {
  const failure = failureOf(error);
  const { reason, detail, retryAfterMs } = classify(failure);
  const correlationId = error instanceof LinkFailure ? error.correlationId : undefined;
  const isFinal = failure.kind === "answer" && (failure.status < 500 || failure.code === "ca_unavailable");
  if (isFinal && failure.code !== undefined) {
    const { code, excerpt, nextStep = "", retryAfterSeconds } = failure;
    const patience = retryAfterSeconds === undefined ? "" : ` (${retryAfterSeconds} s)`;
    return new JoinFailure("refused", code, {
      message: excerpt,
      nextStep: `${nextStep}${patience}`,
      reason: aboutTheToken.has(reason) ? "recovery_enrollment_blocked" : reason,
      retryAfterMs,
      correlationId,
    });
  }
  if (reason === "server_tls_untrusted" || reason === "clock_skew") {
    return new JoinFailure("refused", reason, {
      message: `The server at ${origin} cannot prove that it is the one of this token (${detail}). The token was not sent.`,
      nextStep:
        "Use the node-facing address that `holdfast node token create` printed, not the one for browsers; then check " +
        "this host's clock, and whether a proxy opens TLS on the way.",
      reason,
    });
  }
  return new JoinFailure("unreachable", reason, {
    message: `The server at ${origin} does not answer as it should: ${detail}`,
    nextStep: "Check the address, name resolution and firewall from this host, then run the same command again.",
    reason,
    retryAfterMs,
    correlationId,
  });
}

/** What these mean for a request with a certificate is not what they mean for a token. */
const aboutTheToken: ReadonlySet<DiagnosticReason> = new Set([
  "auth_failed",
  "identity_revoked",
  "task_poll_failed",
]);

function checkedIdentity(answer: EnrollAnswer, key: KeyObject, root: string) {
  const identity = parseIdentity(privateKeyPem(key) + answer.certificate, "the server's answer");
  checkChain(identity.chainPem, [root]);
  if (identity.nodeId !== answer.node_id) {
    throw new JoinFailure("refused", "certificate_unusable", {
      message: "The server's answer names one node and its certificate another; nothing was kept.",
      nextStep: "Tell the operator of the server.",
    });
  }
  return identity;
}

function withRoot(bundle: readonly string[], root: string): string[] {
  const known = digestOf(root);
  return bundle.some((one) => digestOf(one) === known) ? [...bundle] : [root, ...bundle];
}

function digestOf(pem: string): string | undefined {
  try {
    return sha256OfRoot(pem);
  } catch {
    return undefined;
  }
}
