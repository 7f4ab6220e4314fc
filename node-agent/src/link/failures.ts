// Classifies a failed request by the reasons of the diagnostic catalogue. One pure, total function,
// because everything depends on it: how long to wait, what the operator sees, and that an overloaded
// or restarting server is never mistaken for a rejected identity.

import { isCertificatePage, rejectedInHandshake } from "@holdfast/contracts/node/ingress-rejection";
import type { DiagnosticReason } from "@holdfast/contracts/reasons/node";
import { exhaustive } from "@holdfast/kit/exhaustive";
import { HostProblem } from "../identity/state-directory.ts";

export type Failure =
  /** No response: an error of the socket, of name resolution, or the agent's own timeout. */
  | { kind: "no_answer"; code: string; message: string }
  /** An unexpected response. `code` is from the error envelope, if the server itself responded. */
  | {
      kind: "answer";
      status: number;
      code: string | undefined;
      /** The envelope's message, or the text of a page. */
      excerpt: string;
      nextStep?: string;
      retryAfterSeconds?: number;
      /** The server refused another certificate than the one presented: its serial; null: it received none. */
      received?: string | null;
    };

export type Classified = {
  reason: DiagnosticReason;
  /** Human-readable; redacted where it is recorded. */
  detail: string;
  /** The Retry-After of the response. */
  retryAfterMs: number | undefined;
  /** Of the error, if the server itself responded. */
  code?: string | undefined;
};

/** OpenSSL's verification results and Node's own host name check: the server could not prove who it is. */
const untrusted =
  /^(CERT_|UNABLE_TO_|DEPTH_ZERO_SELF_SIGNED_CERT$|SELF_SIGNED_CERT_IN_CHAIN$|ERR_TLS_CERT_|INVALID_(CA|PURPOSE)$|HOSTNAME_MISMATCH$|AKID_|SUBJECT_ISSUER_MISMATCH$|ERROR_IN_CERT_|CRL_|PATH_LENGTH_EXCEEDED$)/;
const ownCertificateExpired = /^ERR_SSL_\w+_ALERT_CERTIFICATE_EXPIRED$/;
/** The peer does not use TLS or HTTP, or accepts connections and sends nothing. */
const otherProtocol = /^(ERR_SSL_|EPROTO$|HPE_|ERR_HTTP_|ANSWER_|TLS_TIMEOUT$)/;
/** Errors of the system's resolver, and the agent's own timeout for it. */
const nameUnresolved = /^(ENOTFOUND|EAI_\w+|ENODATA|ESERVFAIL|EREFUSED|LOOKUP_TIMEOUT)$/;

/** Node.js's advice to use the host's trust store: an agent only trusts Holdfast's own CA. */
const adviceOfNode = /; if the root CA is installed locally, .*$/;

const rateLimitPage = /\b(rate.?limit|too many requests|slow down)/i;

export function classify(failure: Failure): Classified {
  switch (failure.kind) {
    case "no_answer":
      return { ...reasonOfNoAnswer(failure), retryAfterMs: undefined };
    case "answer": {
      const { retryAfterSeconds } = failure;
      const retryAfterMs = retryAfterSeconds === undefined ? undefined : retryAfterSeconds * 1000;
      const { code } = failure;
      return { reason: reasonOfAnswer(failure), detail: detailOfAnswer(failure), retryAfterMs, code };
    }
    default:
      return exhaustive(failure);
  }
}

function reasonOfNoAnswer({ code, message }: Failure & { kind: "no_answer" }): {
  reason: DiagnosticReason;
  detail: string;
} {
  const text = message.replace(adviceOfNode, "");
  const detail = text.includes(code) ? text : `${code}: ${text}`;
  // OpenSSL checks the dates only of a chain with a trusted root: it is the right server, with a certificate
  // that is not valid yet by this host's clock.
  if (code === "CERT_NOT_YET_VALID") {
    return { reason: "clock_skew", detail: `${detail}; the server's certificate begins in this host's future` };
  }
  if (code === "CERT_HAS_EXPIRED") {
    return { reason: "server_tls_untrusted", detail: `${detail}; unless this host's clock is ahead` };
  }
  if (untrusted.test(code)) return { reason: "server_tls_untrusted", detail };
  if (ownCertificateExpired.test(code)) return { reason: "cert_expired", detail };
  if (rejectedInHandshake.test(code)) return { reason: "ingress_mtls_rejected", detail };
  if (otherProtocol.test(code)) return { reason: "control_plane_unreachable", detail };
  if (nameUnresolved.test(code)) return { reason: "api_name_unresolved", detail };
  return { reason: "api_unreachable", detail };
}

function reasonOfAnswer(failure: Failure & { kind: "answer" }): DiagnosticReason {
  const { status, code, excerpt } = failure;
  if (status === 429 || code === "rate_limit_exceeded") return "edge_rate_limited";
  if (code === undefined) {
    // Not the server, but a proxy, portal or page. What it says about access is not about this node's identity, unless it
    // is about the certificate itself.
    if (isCertificatePage({ status, text: excerpt })) return "ingress_mtls_rejected";
    return status >= 400 && rateLimitPage.test(excerpt) ? "edge_rate_limited" : "control_plane_unreachable";
  }
  if (status >= 500) return "control_plane_unreachable";
  // Agents never send that header: it is from a proxy that the server does not trust as an ingress.
  if (code === "certificate_header_refused") return "control_plane_unreachable";
  // Before all that is said about a certificate: it was not this agent's, which always presents its own.
  if (failure.received !== undefined || code === "certificate_missing") return "edge_terminates_tls";
  if (code === "cert_expired") return "cert_expired";
  if (code === "identity_revoked") return "identity_revoked";
  if (code === "identity_retired") return "identity_retired";
  if (status === 401 || status === 403) return "auth_failed";
  if (code === "route_not_found" || code === "host_refused") return "endpoint_profile_drift";
  // Agents of the server's own version always send valid requests.
  if (status === 400 || status === 422) return "agent_version_drift";
  return "task_poll_failed";
}

function detailOfAnswer({ status, code, excerpt, received }: Failure & { kind: "answer" }): string {
  if (code === undefined) return `HTTP ${status}, not from the server: ${excerpt}`;
  const instead = received ? `; the server received the certificate ${received}, not this agent's` : "";
  return `HTTP ${status} ${code}: ${excerpt}${instead}`;
}

/** A failed request. */
export class LinkFailure extends Error {
  override name = "LinkFailure";
  readonly failure: Failure;
  readonly correlationId: string | undefined;
  /** If the server responded: its clock, and this host's before and after. */
  readonly date: { serverTime: number; sentAt: number; receivedAt: number } | undefined;

  constructor(failure: Failure, answered: Partial<Pick<LinkFailure, "correlationId" | "date">> = {}) {
    super(classify(failure).detail);
    this.failure = failure;
    this.correlationId = answered.correlationId;
    this.date = answered.date;
  }

  /** The id of the request, unless the response has one. */
  of(correlationId: string): LinkFailure {
    if (this.correlationId !== undefined) return this;
    return new LinkFailure(this.failure, { correlationId, ...(this.date ? { date: this.date } : {}) });
  }
}

export function failureOf(error: unknown): Failure {
  if (error instanceof LinkFailure) return error.failure;
  const { code, message } = error as NodeJS.ErrnoException;
  return {
    kind: "no_answer",
    code: typeof code === "string" ? code : "UNKNOWN",
    message: message ?? String(error),
  };
}

/** Classifies any error of a request. */
export function classifyError(error: unknown): Classified {
  if (!(error instanceof HostProblem)) return classify(failureOf(error));
  return { reason: error.reason, detail: error.message, retryAfterMs: undefined };
}
