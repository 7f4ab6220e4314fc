// Exchanges a recovery token for a new identity of this node. Nothing secret is sent before the server has proved over TLS
// that it belongs to the recovery roots, before the clock of this host is known to be right, and before the key is stored:
// a repeated request must use the same key. Writes nothing itself.

import { createPrivateKey, randomBytes } from "node:crypto";
import type { RequestOptions } from "node:https";
import { CLOCK_TOLERANCE_SECONDS } from "@holdfast/contracts/node/limits";
import type { IssuedCertificate } from "@holdfast/contracts/node/protocol";
import type { RecoveryToken, RequestCause } from "@holdfast/contracts/node/recovery";
import type { SignedEnrollment, SignedServerTime } from "@holdfast/contracts/node/trust";
import { certificateRequest } from "@holdfast/kit/certificate-request";
import { isSignedBy } from "@holdfast/kit/signed-statement";
import { acceptEnrollment, rootKeyring } from "../identity/accept-trust.ts";
import { parseIdentity } from "../identity/identity-file.ts";
import { checkChain } from "../identity/renew.ts";
import { HostProblem } from "../identity/state-directory.ts";
import { contradiction } from "../identity/trials.ts";
import { checkApiIdentity } from "../link/api-identity.ts";
import { certainSkewSeconds, clockSkew } from "../link/clock-skew.ts";
import { type Answer, type Ask, exchange } from "../link/exchange.ts";
import { LinkFailure } from "../link/failures.ts";
import type { RecoveryPath } from "./path.ts";
import { newestToken, type Recovered } from "./state.ts";

/** The response cannot be trusted or used. The same token and key are tried again later. */
export class UnusableAnswer extends Error {
  override name = "UnusableAnswer";
  readonly correlationId: string | undefined;

  constructor(message: string, correlationId: string | undefined) {
    super(message);
    this.correlationId = correlationId;
  }
}

/** By the server's signed time: it is not sent. */
export class TokenExpired extends Error {
  override name = "TokenExpired";
}

export type Send = <T>(ask: Ask) => Promise<Answer<T>>;

export type RecoveryRequest = {
  path: RecoveryPath;
  token: RecoveryToken;
  /** Of the key for this token, on disk when it returns. */
  storedKey: () => string;
  node: { id: string; profile: string; instanceId: string; bootId: string };
  cause: RequestCause;
  send?: Send | undefined;
  /** This host's clock. */
  now?: () => number;
  signal: AbortSignal;
};

export type RecoveryResult = {
  recovered: Recovered;
  token: RecoveryToken | undefined;
  url: string;
  correlationId: string | undefined;
};

/** What is used of it. */
type RecoverAnswer = Pick<IssuedCertificate, "certificate"> & { trust: SignedEnrollment; recovery: RecoveryToken };

const TIMEOUT_MS = 15_000;

/** At the first address that responds as this server. Throws the failure of the first one if none does. */
export async function requestRecovery(request: RecoveryRequest): Promise<RecoveryResult> {
  let first: LinkFailure | undefined;
  for (const url of request.path.urls) {
    try {
      await checkClock(request, url);
      return await recoverAt(request, url);
    } catch (error) {
      if (!(error instanceof LinkFailure) || isOfServer(error) || request.signal.aborted) throw error;
      first ??= error;
    }
  }
  throw first ?? new HostProblem("endpoint_profile_drift", "There is no https:// address to recover at.");
}

/** The api itself has responded: another address leads to the same one. */
function isOfServer({ failure }: LinkFailure): boolean {
  return failure.kind === "answer" && failure.code !== undefined;
}

/** The connection need not be trusted: the time is signed for this request. */
async function checkClock(request: RecoveryRequest, url: string): Promise<void> {
  const { roots } = request.path;
  const nonce = randomBytes(24).toString("base64url");
  const answer = await ask<SignedServerTime>(request, {
    ...{ method: "GET", url, path: `/v1/server-time?nonce=${nonce}` },
    via: { rejectUnauthorized: false },
  });
  const { kind, content } = answer.body;
  const serverTime = Date.parse(content?.time ?? "");
  if (kind !== "server_time" || Number.isNaN(serverTime) || !isSignedBy(rootKeyring(roots), answer.body)) {
    throw untrusted("the time is not signed by a root of this node", answer.correlationId);
  }
  if (content.nonce !== nonce) throw untrusted("the signed time is of another request", answer.correlationId);
  const skew = certainSkewSeconds(clockSkew({ ...timesOf(request, answer), serverTime }));
  if (Math.abs(skew) > CLOCK_TOLERANCE_SECONDS) {
    const side = skew > 0 ? "behind" : "ahead of";
    throw new HostProblem(
      "clock_skew",
      `this host's clock is ${Math.round(Math.abs(skew))} s ${side} the server's signed time ${content.time}; ` +
        "no new identity is requested before it is right",
    );
  }
  if (Date.parse(request.token.expires_at) <= serverTime) throw new TokenExpired();
}

/** Somebody else is at the address, which may also be in between. */
function untrusted(message: string, correlationId: string | undefined): LinkFailure {
  return new LinkFailure({ kind: "no_answer", code: "ERR_TLS_CERT_SERVER_TIME", message }, { correlationId });
}

/** A test's clock differs from that of the exchange. */
function timesOf({ now }: RecoveryRequest, answer: Answer<unknown>): { sentAt: number; receivedAt: number } {
  const ahead = now ? now() - Date.now() : 0;
  return { sentAt: answer.sentAt + ahead, receivedAt: answer.receivedAt + ahead };
}

async function recoverAt(request: RecoveryRequest, url: string): Promise<RecoveryResult> {
  const { path, token, node, cause } = request;
  const keyPem = request.storedKey();
  const key = createPrivateKey(keyPem);
  const answer = await ask<RecoverAnswer>(request, {
    ...{ method: "POST", url, path: "/v1/recover" },
    body: {
      token: token.token,
      csr: certificateRequest(key, node.id),
      node_id: node.id,
      profile: node.profile,
      cause,
      sent_at: new Date((request.now ?? Date.now)()).toISOString(),
      instance_id: node.instanceId,
      boot_id: node.bootId,
    },
    // The host's own trust store is ignored: a proxy that ends TLS would read the token.
    via: { ca: [...path.roots], checkServerIdentity: checkApiIdentity },
  });
  const { correlationId } = answer;
  const { certificate, trust: signed, recovery } = answer.body;
  try {
    const identity = parseIdentity(keyPem + certificate, "the server's answer");
    if (identity.nodeId !== node.id) throw new Error(`the certificate is of another node, ${identity.nodeId}`);
    const trust = acceptEnrollment(path.roots, signed, { nodeId: node.id, key });
    checkChain(identity.chainPem, trust.bundle.roots);
    const problem = contradiction({ ...trust, roots: trust.bundle.roots });
    if (problem !== undefined) throw new Error(problem);
    return { recovered: { identity, trust }, token: newestToken(token, recovery), url, correlationId };
  } catch (error) {
    throw new UnusableAnswer((error as Error).message, correlationId);
  }
}

function ask<T>(
  { path, signal, send = exchange }: RecoveryRequest,
  one: { method: "GET" | "POST"; url: string; path: string; body?: unknown; via: RequestOptions },
): Promise<Answer<T>> {
  const { url, path: at, via, ...rest } = one;
  const lookup = path.lookup ? { lookup: path.lookup } : {};
  return send<T>({
    ...{ ...rest, url: new URL(at, url), timeoutMs: TIMEOUT_MS, signal },
    via: { agent: false, ...lookup, ...via },
  });
}
