import { errorCatalogue } from "@holdfast/contracts/errors";
import { diagnosticReasonNames } from "@holdfast/contracts/reasons/node";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readAnswer } from "./exchange.ts";
import { classify, type Failure, failureOf } from "./failures.ts";

const noAnswer = (code: string): Failure => ({ kind: "no_answer", code, message: `it failed (${code})` });
const answered = (status: number, code?: string, excerpt = "text"): Failure => ({
  kind: "answer",
  status,
  code,
  excerpt,
});
/** As nginx 1.22 sends it. */
const nginxPage = (sentence: string) =>
  [
    `<html>\r\n<head><title>400 ${sentence}</title></head>\r\n<body>\r\n<center><h1>400 Bad Request</h1></center>`,
    `<center>${sentence}</center>\r\n<hr><center>nginx/1.22.1</center>\r\n</body>\r\n</html>\r\n`,
  ].join("\r\n");
const identityReasons = ["auth_failed", "cert_expired", "identity_revoked", "identity_retired"];

describe("classify", () => {
  it.for([
    ...["ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH", "EPIPE"],
    ...["CONNECT_TIMEOUT", "NO_ANSWER_IN_TIME", "UNKNOWN"],
  ])("AGENT-01 %s is an unreachable API", (code) => {
    expect(classify(noAnswer(code)).reason).toBe("api_unreachable");
  });

  it.for(["ENOTFOUND", "EAI_AGAIN", "EAI_FAIL", "EREFUSED", "LOOKUP_TIMEOUT"])(
    "AGENT-01 DRIFT-13 %s is a name without an address",
    (code) => {
      expect(classify(noAnswer(code)).reason).toBe("api_name_unresolved");
    },
  );

  it.for([
    ...["DEPTH_ZERO_SELF_SIGNED_CERT", "SELF_SIGNED_CERT_IN_CHAIN", "UNABLE_TO_VERIFY_LEAF_SIGNATURE"],
    ...[
      "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
      "UNABLE_TO_GET_ISSUER_CERT",
      "CERT_SIGNATURE_FAILURE",
      "CERT_UNTRUSTED",
    ],
    ...["ERR_TLS_CERT_ALTNAME_INVALID", "CERT_HAS_EXPIRED", "INVALID_CA", "INVALID_PURPOSE", "HOSTNAME_MISMATCH"],
  ])("AGENT-01 %s is a server that cannot be trusted", (code) => {
    expect(classify(noAnswer(code)).reason).toBe("server_tls_untrusted");
  });

  it("AGENT-01 does not pass on advice that would have the agent trust others", () => {
    const message =
      "self-signed certificate; if the root CA is installed locally, try running Node.js with --use-system-ca";
    const { detail } = classify({ kind: "no_answer", code: "DEPTH_ZERO_SELF_SIGNED_CERT", message });
    expect(detail).toBe("DEPTH_ZERO_SELF_SIGNED_CERT: self-signed certificate");
  });

  it("ID-14 a server's certificate from the future is a matter of the clock", () => {
    expect(classify(noAnswer("CERT_NOT_YET_VALID")).reason).toBe("clock_skew");
  });

  it.for(["EPROTO", "ERR_SSL_WRONG_VERSION_NUMBER", "HPE_INVALID_CONSTANT", "ANSWER_TOO_LARGE", "TLS_TIMEOUT"])(
    "AGENT-01 %s: something else answers there",
    (code) => {
      expect(classify(noAnswer(code)).reason).toBe("control_plane_unreachable");
    },
  );

  it.for([
    ["ERR_SSL_TLSV1_ALERT_UNKNOWN_CA", "ingress_mtls_rejected"],
    ["ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE", "ingress_mtls_rejected"],
    ["ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED", "ingress_mtls_rejected"],
    ["ERR_SSL_SSLV3_ALERT_CERTIFICATE_REVOKED", "ingress_mtls_rejected"],
    ["ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED", "cert_expired"],
  ] as const)("AGENT-01 ID-11 %s is a proxy that refuses our certificate", ([code, reason]) => {
    expect(classify(noAnswer(code)).reason).toBe(reason);
  });

  it.for([
    [401, "cert_expired", "cert_expired"],
    [401, "identity_revoked", "identity_revoked"],
    [401, "identity_retired", "identity_retired"],
    [401, "certificate_missing", "edge_terminates_tls"],
    [401, "certificate_untrusted", "auth_failed"],
    [401, "certificate_unusable", "auth_failed"],
    [401, "certificate_not_yet_valid", "auth_failed"],
    [403, "node_mismatch", "auth_failed"],
    [404, "route_not_found", "endpoint_profile_drift"],
    [421, "host_refused", "endpoint_profile_drift"],
    [400, "invalid_request", "agent_version_drift"],
    [422, "invalid_request", "agent_version_drift"],
    [409, "conflict", "task_poll_failed"],
    [429, "rate_limit_exceeded", "edge_rate_limited"],
    [503, "rate_limit_exceeded", "edge_rate_limited"],
    [500, "internal_error", "control_plane_unreachable"],
    [503, "database_unavailable", "control_plane_unreachable"],
    [503, "cert_expired", "control_plane_unreachable"],
    [503, "ingress_identity_refused", "control_plane_unreachable"],
    [403, "certificate_header_refused", "control_plane_unreachable"],
  ] as const)("AGENT-01 %d %s is %s", ([status, code, reason]) => {
    expect(classify(answered(status, code)).reason).toBe(reason);
  });

  it.for(["identity_revoked", "identity_retired", "cert_expired", "certificate_untrusted", "node_mismatch"])(
    "DRIFT-14 %s of another certificate than this agent's is about whoever terminates TLS",
    (code) => {
      const { reason, detail } = classify({ ...answered(401, code), received: "0badcafe" } as Failure);
      expect(reason).toBe("edge_terminates_tls");
      expect(detail).toBe(
        `HTTP 401 ${code}: text; the server received the certificate 0badcafe, not this agent's`,
      );
      expect(classify({ ...answered(401, code), received: null } as Failure).reason).toBe("edge_terminates_tls");
      expect(classify(answered(401, code)).reason).not.toBe("edge_terminates_tls");
    },
  );

  it("DRIFT-14 an overloaded server is none, whatever it received", () => {
    const busy = { ...answered(503, "ingress_identity_refused"), received: null } as Failure;
    expect(classify(busy).reason).toBe("control_plane_unreachable");
  });

  it.for([
    [401, "Please sign in to the hotel network", "control_plane_unreachable"],
    [403, "Access denied", "control_plane_unreachable"],
    [200, "Welcome to nginx!", "control_plane_unreachable"],
    [502, "Bad Gateway", "control_plane_unreachable"],
    [403, "Error 1015 You are being rate limited", "edge_rate_limited"],
    [503, "Too many requests, please slow down", "edge_rate_limited"],
    [429, "", "edge_rate_limited"],
  ] as const)("AGENT-02 a page with %d that says %j is %s", ([status, excerpt, reason]) => {
    expect(classify(answered(status, undefined, excerpt)).reason).toBe(reason);
  });

  it.for([
    ["The SSL certificate error", "ingress_mtls_rejected"],
    ["No required SSL certificate was sent", "ingress_mtls_rejected"],
    ["The plain HTTP request was sent to HTTPS port", "control_plane_unreachable"],
  ] as const)("ID-11 nginx's page %j is %s", async ([sentence, reason]) => {
    const thrown = await Promise.resolve()
      .then(() =>
        readAnswer({ status: 400, headers: {}, text: nginxPage(sentence) }, { sentAt: 0, receivedAt: 0 }),
      )
      .catch((error: unknown) => error);
    expect(classify(failureOf(thrown)).reason).toBe(reason);
  });

  it.for([
    [502, undefined, "control_plane_unreachable"],
    [404, undefined, "control_plane_unreachable"],
    [429, undefined, "edge_rate_limited"],
    // The api's own answers have a code, whatever their text.
    [400, "invalid_request", "agent_version_drift"],
  ] as const)("ID-11 the same sentence with %d %s is not about the certificate", ([status, code, reason]) => {
    expect(classify(answered(status, code, "The SSL certificate error")).reason).toBe(reason);
  });

  it("AGENT-02 passes on how long the server asks to wait", () => {
    expect(classify({ ...answered(429), retryAfterSeconds: 7 } as Failure).retryAfterMs).toBe(7_000);
  });

  it("AGENT-01 is total, and 429 and 5xx are never identity failures", () => {
    const codes = fc.option(fc.oneof(fc.constantFrom(...Object.keys(errorCatalogue)), fc.string()), {
      nil: undefined,
    });
    const answers = fc.record({
      kind: fc.constant("answer" as const),
      status: fc.integer({ min: 100, max: 599 }),
      code: codes,
      excerpt: fc.string(),
    });
    const silence = fc.record({
      kind: fc.constant("no_answer" as const),
      code: fc.string(),
      message: fc.string(),
    });
    fc.assert(
      fc.property(fc.oneof(answers, silence), (failure: Failure) => {
        const { reason } = classify(failure);
        expect(diagnosticReasonNames).toContain(reason);
        const ours = failure.kind === "answer" && (failure.status === 429 || failure.status >= 500);
        const foreign = failure.kind === "answer" && failure.code === undefined;
        if (ours || foreign) expect(identityReasons).not.toContain(reason);
      }),
    );
  });

  it("AGENT-01 takes anything that can be thrown", () => {
    expect(failureOf(Object.assign(new Error("no"), { code: "ECONNRESET" })).kind).toBe("no_answer");
    expect(classify(failureOf("text")).reason).toBe("api_unreachable");
  });
});
