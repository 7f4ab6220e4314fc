// The recovery request over real TLS: the signed time first, the token only to the right server, and nothing of the
// response is taken unchecked.

import type { RecoveryToken } from "@holdfast/contracts/node/recovery";
import { newPrivateKey, privateKeyPem } from "@holdfast/kit/certificate-request";
import { describe, expect, it } from "vitest";
import { makeAuthority } from "../../testkit/agent/fake-authority.ts";
import { endingOf } from "../src/recovery/endings.ts";
import { type RecoveryRequest, requestRecovery } from "../src/recovery/request.ts";
import { type FakeApi, type Fault, startFakeApi } from "./support/fake-api.ts";

const nowhere = "https://127.0.0.1:1";

function requestTo(api: FakeApi, changes: Partial<RecoveryRequest> = {}): RecoveryRequest {
  const key = privateKeyPem(newPrivateKey());
  return {
    path: { urls: [api.url], roots: [api.authority.rootPem] },
    token: api.recovery.issue(),
    storedKey: () => key,
    node: { id: api.nodeId, profile: api.profile.name, instanceId: crypto.randomUUID(), bootId: "boot" },
    cause: "cert_expired",
    signal: new AbortController().signal,
    ...changes,
  };
}
/** How it is recorded, and how it is retried. */
const endOf = async (request: RecoveryRequest) => {
  try {
    await requestRecovery(request);
  } catch (error) {
    return endingOf(error, "cert_expired");
  }
  throw new Error("it succeeded");
};
const failing =
  (fault: Fault, at = "/v1/recover") =>
  (path: string) =>
    path === at ? fault : undefined;
const page: Fault = {
  do: "answer",
  status: 403,
  headers: { "content-type": "text/html" },
  body: "<h1>Forbidden</h1>",
};

describe("a recovery request", () => {
  it("ID-05 returns an identity with new trust and the next token, and repeated with the same key the same one", async () => {
    const api = await startFakeApi();
    const request = requestTo(api);
    const { recovered, token, correlationId } = await requestRecovery(request);
    expect(recovered.identity).toMatchObject({ nodeId: api.nodeId, keyPem: request.storedKey() });
    expect(recovered.trust).toMatchObject({ profile: api.profile, keySet: api.verifiers });
    expect(token?.seq).toBe(request.token.seq + 1);
    expect(correlationId).toMatch(/-/);
    const again = await requestRecovery(request);
    expect(again.recovered.identity.certificate.serial).toBe(recovered.identity.certificate.serial);
    expect(api.recovery.requests[0]).toMatchObject({
      ...{
        token: request.token.token,
        node_id: api.nodeId,
        profile: "test",
        cause: "cert_expired",
        boot_id: "boot",
      },
    });
    const other = privateKeyPem(newPrivateKey());
    expect(await endOf({ ...request, storedKey: () => other })).toMatchObject({
      ...{ kind: "refused", reason: "recovery_refused", isAboutToken: true },
      detail: expect.stringContaining("recovery_token_used"),
    });
  });

  it.for([-3600_000, 90_000, 86_400_000 * 30])(
    "ID-14 sends nothing but a nonce while this host's clock is off by %i ms",
    async (ms) => {
      const api = await startFakeApi();
      const ended = await endOf(requestTo(api, { now: () => Date.now() + ms }));
      expect(ended).toMatchObject({ kind: "host", reason: "clock_skew" });
      expect(ended.detail).toMatch(/(ahead of|behind) the server's signed time \d{4}-\d\d-\d\dT/);
      expect(api.requests).toEqual(["/v1/server-time"]);
    },
  );

  it("ID-14 takes a clock that is a little off, and the server's own verdict about it", async () => {
    const api = await startFakeApi();
    await requestRecovery(requestTo(api, { now: () => Date.now() - 50_000 }));
    api.recovery.recover = async () => ({ status: 409, code: "host_clock_skew" });
    expect(await endOf(requestTo(api))).toMatchObject({ kind: "host", reason: "clock_skew" });
  });

  it("ID-04 does not send a token that is too old by the signed time", async () => {
    const api = await startFakeApi();
    const token: RecoveryToken = {
      ...api.recovery.issue(),
      expires_at: new Date(Date.now() - 1000).toISOString(),
    };
    await expect(requestRecovery(requestTo(api, { token }))).rejects.toMatchObject({ name: "TokenExpired" });
    expect(api.recovery.requests).toEqual([]);
  });

  it("ID-06 does not believe a time that somebody else signed, or that is of another request", async () => {
    const api = await startFakeApi();
    const asked: string[] = [];
    const signedTime = api.recovery.signedTime;
    api.recovery.signedTime = (nonce) => {
      asked.push(nonce);
      return signedTime(asked[0] ?? "");
    };
    await requestRecovery(requestTo(api));
    const replayed = await endOf(requestTo(api));
    expect(replayed).toMatchObject({ kind: "untrusted", reason: "recovery_enrollment_blocked" });
    api.recovery.signedTime = signedTime;
    api.recovery.signer = await makeAuthority();
    expect(await endOf(requestTo(api))).toMatchObject({
      kind: "untrusted",
      reason: "recovery_enrollment_blocked",
    });
    expect(api.recovery.requests).toHaveLength(1);
  });

  it("ID-06 sends no token to a server of another CA, even if it passes on the right time", async () => {
    const [api, other] = [await startFakeApi(), await startFakeApi()];
    other.recovery.signer = api.authority;
    const request = requestTo(api, { path: { urls: [other.url], roots: [api.authority.rootPem] } });
    const ended = await endOf(request);
    expect(ended).toMatchObject({ kind: "untrusted", reason: "recovery_enrollment_blocked" });
    expect(ended.detail).toMatch(/certificate/);
    expect(other.requests).toEqual(["/v1/server-time"]);
    expect(other.recovery.requests).toEqual([]);
  });

  it("ID-06 sends no token to a gateway, which has a certificate of the same CA", async () => {
    const api = await startFakeApi();
    await api.stop();
    api.shows = await api.authority.gateway(["127.0.0.1"]);
    await api.start();
    expect(await endOf(requestTo(api))).toMatchObject({
      kind: "untrusted",
      reason: "recovery_enrollment_blocked",
    });
    expect(api.recovery.requests).toEqual([]);
  });

  it("ID-06 uses the next address when one does not respond, and reports the first when none does", async () => {
    const api = await startFakeApi();
    const roots = [api.authority.rootPem];
    const { url } = await requestRecovery(requestTo(api, { path: { urls: [nowhere, api.url], roots } }));
    expect(url).toBe(api.url);
    api.fault = failing(page);
    const none = await endOf(requestTo(api, { path: { urls: [nowhere, api.url], roots } }));
    expect(none).toMatchObject({ kind: "unreachable", reason: "recovery_enrollment_blocked" });
    expect(none.detail).toContain("ECONNREFUSED");
    api.fault = () => undefined;
    api.recovery.recover = async () => ({ status: 403, code: "recovery_disabled" });
    const before = api.requests.length;
    await endOf(requestTo(api, { path: { urls: [api.url, api.url], roots } }));
    expect(api.requests.slice(before), "the server itself has decided").toEqual([
      "/v1/server-time",
      "/v1/recover",
    ]);
    const nothing = await endOf(requestTo(api, { path: { urls: [], roots } }));
    expect(nothing).toMatchObject({ reason: "endpoint_profile_drift" });
  });

  it("AGENT-01 takes a page of a proxy for no refusal, and an outage that the link has too for an outage", async () => {
    const api = await startFakeApi();
    api.fault = failing(page);
    const ended = await endOf(requestTo(api));
    expect(ended).toMatchObject({ kind: "unreachable", reason: "recovery_enrollment_blocked" });
    expect(ended.detail).toContain("not from the server: Forbidden");
    api.fault = failing({ do: "reset" });
    const failure = await requestRecovery(requestTo(api)).catch((error: unknown) => error);
    expect(endingOf(failure, "api_unreachable").reason).toBe("api_unreachable");
    expect(endingOf(failure, "cert_expired").reason).toBe("recovery_enrollment_blocked");
    const down = '{"code":"database_unavailable","message":"m"}';
    api.fault = failing({ do: "answer", status: 503, body: down });
    expect(await endOf(requestTo(api))).toMatchObject({
      kind: "unreachable",
      reason: "control_plane_unreachable",
    });
  });

  it("ID-05 waits as long as a 429 says", async () => {
    const api = await startFakeApi();
    const limited: Fault = { do: "answer", status: 429, headers: { "retry-after": "120" }, body: "slow down" };
    for (const at of ["/v1/recover", "/v1/server-time"]) {
      api.fault = failing(limited, at);
      const ended = await endOf(requestTo(api));
      expect(ended).toMatchObject({ kind: "rate_limited", reason: "edge_rate_limited", retryAfterMs: 120_000 });
    }
    const line = '{"code":"rate_limit_exceeded","message":"Many nodes recover right now."}';
    api.fault = failing({ ...limited, body: line });
    expect(await endOf(requestTo(api))).toMatchObject({ kind: "in_line", retryAfterMs: 120_000 });
  });

  it.for([
    ["identity_revoked", 401, "refused", "identity_revoked"],
    ["node_retired", 409, "refused", "identity_retired"],
    ["node_quarantined", 403, "refused", "node_quarantined"],
    ["recovery_disabled", 403, "refused", "recovery_refused"],
    ["recovery_profile_mismatch", 403, "refused", "recovery_refused"],
    ["recovery_not_needed", 409, "not_yet", "recovery_refused"],
  ] as const)("AGENT-01 records %s with the server's id", async ([code, status, kind, reason]) => {
    const api = await startFakeApi();
    api.recovery.recover = async () => ({ status, code });
    const ended = await endOf(requestTo(api));
    expect(ended).toMatchObject({ kind, reason, correlationId: expect.stringMatching(/-/) });
    expect(ended.isAboutToken ?? false).toBe(false);
  });

  it("ID-05 takes nothing of a response that is for another node, key or CA", async () => {
    const api = await startFakeApi();
    const { recover, signer } = api.recovery;
    const other = await startFakeApi();
    const wrong: FakeApi["recovery"]["recover"][] = [
      (body) => recover({ ...body, node_id: other.nodeId }),
      async (body) => ({ ...(await recover(body)), certificate: "none" }),
      async (body) => ({
        ...(await recover(body)),
        certificate: await api.authority.certify(body.csr, other.nodeId),
      }),
      async (body) => ({
        ...(await recover(body)),
        certificate: await other.authority.certify(body.csr, api.nodeId),
      }),
    ];
    for (const answer of wrong) {
      api.recovery.recover = answer;
      const ended = await endOf(requestTo(api));
      expect(ended).toMatchObject({ kind: "failed", reason: "trust_update_refused" });
    }
    api.recovery.recover = recover;
    const time = api.recovery.signedTime;
    api.recovery.signedTime = (nonce) => {
      api.recovery.signer = signer;
      const signed = time(nonce);
      api.recovery.signer = other.authority;
      return signed;
    };
    expect(await endOf(requestTo(api))).toMatchObject({ kind: "failed", reason: "trust_update_refused" });
  });
});
