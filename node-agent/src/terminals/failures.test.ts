import { describe, expect, it } from "vitest";
import { HostProblem } from "../identity/state-directory.ts";
import { LinkFailure } from "../link/failures.ts";
import { streamFailure } from "./failures.ts";

const URL = "https://gateway:18443";
const socketError = (code: string) => Object.assign(new Error(`it failed: ${code}`), { code });
const answer = (status: number, code: string | undefined) =>
  new LinkFailure({ kind: "answer", status, code, excerpt: "said so" });

describe("why a stream did not reach the gateway", () => {
  it.for([
    ["ENOTFOUND", "terminal_node_stream_timeout"],
    ["ECONNREFUSED", "terminal_node_stream_timeout"],
    ["ETIMEDOUT", "terminal_node_stream_timeout"],
    ["ECONNRESET", "terminal_node_stream_timeout"],
    ["EHOSTUNREACH", "terminal_node_stream_timeout"],
    ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "terminal_env_profile_drift"],
    ["ERR_TLS_CERT_ALTNAME_INVALID", "terminal_env_profile_drift"],
    ["ERR_SSL_WRONG_VERSION_NUMBER", "terminal_env_profile_drift"],
    ["ERR_SSL_TLSV1_ALERT_UNKNOWN_CA", "terminal_node_stream_mtls_failed"],
    ["ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED", "terminal_node_stream_mtls_failed"],
    ["CERT_NOT_YET_VALID", "terminal_node_stream_mtls_failed"],
  ] as const)("TERM-12 %s is %s", ([code, expected]) => {
    const failure = streamFailure(socketError(code), URL);
    expect(failure.code).toBe(expected);
    expect(failure.detail).toContain(URL);
  });

  it.for([
    [401, "certificate_missing", "terminal_node_stream_mtls_failed", false],
    [403, "identity_revoked", "terminal_node_stream_mtls_failed", false],
    [404, "terminal_session_unknown", "terminal_session_unknown", false],
    [404, "route_not_found", "terminal_env_profile_drift", false],
    [503, "shutting_down", "terminal_node_stream_timeout", true],
    [503, "terminal_relay_unavailable", "terminal_relay_unavailable", true],
    [429, "rate_limit_exceeded", "terminal_node_stream_timeout", true],
    [200, undefined, "terminal_env_profile_drift", false],
    [502, undefined, "terminal_env_profile_drift", false],
  ] as const)("TERM-12 %s %s is %s", ([status, code, expected, again]) => {
    expect(streamFailure(answer(status, code), URL)).toMatchObject({ code: expected, again });
  });

  it("TERM-04 a host without an identity has no certificate to show", () => {
    const failure = streamFailure(new HostProblem("identity_key_missing", "There is no key."), URL);
    expect(failure).toMatchObject({ code: "terminal_node_stream_mtls_failed", detail: "There is no key." });
  });
});
