// Requests a node identity from a server with an enrollment token. Nothing secret is sent before the server has presented
// the root certificate whose SHA-256 is in the token, and proved over TLS that its certificate chains to it. Writes no
// files: the caller stores the result.

import type { KeyObject } from "node:crypto";
import type { Agent, RequestOptions } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import type { HostFacts, IssuedCertificate } from "@holdfast/contracts/node/protocol";
import type { SignedEnrollment } from "@holdfast/contracts/node/trust";
import { type DiagnosticReason, isRejection } from "@holdfast/contracts/reasons/node";
import { backoffDelay } from "@holdfast/kit/backoff";
import { certificateRequest, privateKeyPem } from "@holdfast/kit/certificate-request";
import { checkApiIdentity } from "../link/api-identity.ts";
import { certainSkewSeconds, clockSkew } from "../link/clock-skew.ts";
import { type Answer, exchange } from "../link/exchange.ts";
import { classify, failureOf, LinkFailure } from "../link/failures.ts";
import { acceptEnrollment, type Trust } from "./accept-trust.ts";
import { type Identity, parseIdentity } from "./identity-file.ts";
import { checkChain } from "./renew.ts";
import { digestOf } from "./trust-file.ts";

/** The join failed: `unreachable` without any response, `refused` when the server or a proxy refused it. */
export class JoinFailure extends Error {
  override name = "JoinFailure";
  readonly kind: "refused" | "unreachable";
  readonly code: string;
  readonly nextStep: string;
  /** Its reason in the agent's own history. */
  readonly reason: DiagnosticReason;
  /** The Retry-After of the response. */
  readonly retryAfterMs: number | undefined;
  readonly correlationId: string | undefined;

  constructor(
    kind: "refused" | "unreachable",
    code: string,
    problem: { message: string; nextStep: string } & Partial<
      Pick<JoinFailure, "reason" | "retryAfterMs" | "correlationId">
    >,
  ) {
    super(problem.message);
    this.kind = kind;
    this.code = code;
    this.nextStep = problem.nextStep;
    this.reason = problem.reason ?? "recovery_enrollment_blocked";
    this.retryAfterMs = problem.retryAfterMs;
    this.correlationId = problem.correlationId;
  }
}

export type EnrollAnswer = IssuedCertificate & {
  node_id: string;
  org_id: string;
  node_name: string;
  trust: SignedEnrollment;
};

export type Enrolled = { identity: Identity; trust: Trust; answer: Pick<EnrollAnswer, "org_id" | "node_name"> };

const TIMEOUT_MS = 15_000;
/** Certificates are back-dated by this much, for hosts whose clocks are a little behind. */
const BACK_DATED_MS = 5 * 60_000;

/** `agent`: a connection pool; without it, each request opens its own connection. */
export type EnrollmentCall = {
  origin: string;
  attempts: number;
  /** Before each further attempt. */
  onRetry: (failure: JoinFailure) => void;
  agent?: Agent;
};

export async function fetchRoot(call: EnrollmentCall, expectedSha256: string): Promise<string> {
  // The response is not trusted by itself: the certificate must be the one in the token.
  const via = { agent: false as const, rejectUnauthorized: false };
  const answer = await ask<{ roots: string[] }>(call, { method: "GET", path: "/v1/trust-bundle", via });
  const { roots } = answer.body;
  const found = Array.isArray(roots) ? roots.find((root) => digestOf(root) === expectedSha256) : undefined;
  if (found !== undefined) {
    const skew = answer.date === undefined ? undefined : clockSkew({ ...answer, serverTime: answer.date });
    const behindMs = (skew ? certainSkewSeconds(skew) : 0) * 1000;
    if (behindMs > BACK_DATED_MS) throw notYetValid(call.origin, behindMs, "The token was not sent.");
    return found;
  }
  throw new JoinFailure("refused", "ca_mismatch", {
    reason: "server_tls_untrusted",
    message:
      `The server at ${call.origin} shows another root certificate than the one this token was made under; ` +
      "nothing was sent to it. Either the address leads to another installation, or somebody stands in between.",
    nextStep: "Compare the address with the one that `holdfast node token create` printed.",
  });
}

export type Enrollee = { token: string; key: KeyObject; nodeId?: string; nodeName?: string; facts: HostFacts };

/** The host's own trust store is ignored: a proxy that terminates TLS would read the token. */
export async function enroll(
  call: EnrollmentCall,
  root: string,
  { token, key, nodeId, nodeName, facts }: Enrollee,
): Promise<Enrolled> {
  const via = { agent: call.agent ?? (false as const), ca: [root], checkServerIdentity: checkApiIdentity };
  const body = {
    token,
    csr: certificateRequest(key, nodeName ?? facts.hostname),
    node_id: nodeId,
    node_name: nodeName,
    facts,
  };
  const { body: answer } = await ask<EnrollAnswer>(call, { method: "POST", path: "/v1/enroll", body, via });
  const identity = checkedIdentity(answer, key, root);
  const early = identity.certificate.notBefore - Date.now();
  if (early > 0) throw notYetValid(call.origin, early + BACK_DATED_MS, "Nothing was stored.");
  return { identity, trust: checkedTrust(answer, key, root), answer };
}

async function ask<T>(
  { origin, attempts, onRetry }: EnrollmentCall,
  request: { method: "GET" | "POST"; path: string; body?: unknown; via: RequestOptions },
): Promise<Answer<T>> {
  const { path, ...rest } = request;
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await exchange<T>({ ...rest, url: new URL(path, origin), timeoutMs: TIMEOUT_MS });
    } catch (error) {
      const failure = joinFailure(error, origin);
      if (failure.kind === "refused" || attempt + 1 >= attempts) throw failure;
      onRetry(failure);
      await sleep(backoffDelay({ firstMs: 300, maxMs: 3_000 }, attempt));
    }
  }
}

/** The server works, and an operator has to repair its CA or ingress before it issues certificates. */
const issuesNothing: ReadonlySet<string> = new Set(["ca_unavailable", "ca_ingress_mismatch"]);

function joinFailure(error: unknown, origin: string): JoinFailure {
  const failure = failureOf(error);
  const { reason, detail, retryAfterMs } = classify(failure);
  const correlationId = error instanceof LinkFailure ? error.correlationId : undefined;
  const isFinal = failure.kind === "answer" && (failure.status < 500 || issuesNothing.has(failure.code ?? ""));
  if (isFinal && failure.code !== undefined) {
    const { code, excerpt, nextStep = "", retryAfterSeconds } = failure;
    const patience = retryAfterSeconds === undefined ? "" : ` (${retryAfterSeconds} s)`;
    return new JoinFailure("refused", code, {
      message: excerpt,
      nextStep: `${nextStep}${patience}`,
      reason: isAboutToken(reason) ? "recovery_enrollment_blocked" : reason,
      retryAfterMs,
      correlationId,
    });
  }
  if (reason === "server_tls_untrusted" || reason === "clock_skew") {
    return new JoinFailure("refused", reason, {
      message: `The server at ${origin} cannot prove that it issued this token (${detail}). The token was not sent.`,
      nextStep:
        "Use the node-facing address that `holdfast node token create` printed, not the one for browsers; then check " +
        "this host's clock, and whether a proxy opens TLS on the way.",
      reason,
    });
  }
  return new JoinFailure("unreachable", reason, {
    message: `The server at ${origin} returned an unexpected response: ${detail}`,
    nextStep: "Check the address, name resolution and firewall from this host, then run the same command again.",
    reason,
    retryAfterMs,
    correlationId,
  });
}

/** Either this host's clock or the server's is wrong: the agent cannot know which. */
function notYetValid(origin: string, behindMs: number, done: string): JoinFailure {
  return new JoinFailure("refused", "clock_skew", {
    message:
      `This host's clock is ${Math.round(behindMs / 60_000)} minutes behind that of the server at ${origin}, so that its ` +
      `certificate would not be valid here yet. ${done}`,
    nextStep: "Sync the time on this host and on the server (`timedatectl`), then join again.",
    reason: "clock_skew",
  });
}

/** A rejection of a request without a certificate is about its token. */
function isAboutToken(reason: DiagnosticReason): boolean {
  return isRejection(reason) || reason === "task_poll_failed";
}

/** The response may have passed an ingress, which can change everything in it that is not signed. */
function checkedTrust(answer: EnrollAnswer, key: KeyObject, root: string): Trust {
  try {
    return acceptEnrollment([root], answer.trust, { nodeId: answer.node_id, key });
  } catch (error) {
    throw new JoinFailure("refused", "enrollment_answer_untrusted", {
      reason: "trust_update_refused",
      message: `The server's response was modified in transit: ${(error as Error).message}. Nothing was stored.`,
      nextStep:
        "Find out which proxy or ingress is between this host and the api; then join again with a new token, made after that.",
    });
  }
}

function checkedIdentity(answer: EnrollAnswer, key: KeyObject, root: string): Identity {
  const identity = parseIdentity(privateKeyPem(key) + answer.certificate, "the server's answer");
  checkChain(identity.chainPem, [root]);
  if (identity.nodeId !== answer.node_id) {
    throw new JoinFailure("refused", "certificate_unusable", {
      message: "The server's response names one node and its certificate another. Nothing was stored.",
      nextStep: "Tell the operator of the server.",
    });
  }
  return identity;
}
