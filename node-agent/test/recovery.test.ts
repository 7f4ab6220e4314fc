// A whole agent that has lost its identity gets another one by its recovery token, over the path that was pinned when it
// joined.

import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { certificateRequest, newPrivateKey, privateKeyPem } from "@holdfast/kit/certificate-request";
import { describe, expect, it } from "vitest";
import { joinedDirectory } from "../../testkit/agent/agent.ts";
import { makeAuthority } from "../../testkit/agent/fake-authority.ts";
import { readAgentFile } from "../src/identity/agent-file.ts";
import { writeCandidates } from "../src/identity/candidates.ts";
import { parseIdentity, readIdentity } from "../src/identity/identity-file.ts";
import { stateFiles } from "../src/identity/state-directory.ts";
import { newSigningKey, startFakeApi } from "./support/fake-api.ts";
import { metric, recorded, recovers, shortLived, startQuick, stateOf, withToken } from "./support/recovering.ts";

describe("an agent that has lost its identity", () => {
  it("ID-05 whose certificate expires gets another one, takes new trust with it, and works on", async () => {
    const api = await startFakeApi();
    api.recovery.offers = true;
    const agent = await startQuick(await joinedDirectory(api));
    await expect.poll(() => api.heartbeats.at(-1)?.recovery?.seq).toBe(1);
    const key = newSigningKey();
    api.verifiers = { keys: [key.jwk] };
    api.expireShown();
    await recovers(agent);
    await expect.poll(() => api.heartbeats.at(-1)?.recovery?.seq).toBe(2);
    expect(api.heartbeats.at(-1)).toMatchObject({
      counters: { recovery_attempts: 1, recovery_successes: 1, recovery_failures: 0, recovery_suppressed: 0 },
      verifier_kids: [key.kid],
    });
    expect(api.recovery.requests).toMatchObject([{ cause: "cert_expired", node_id: api.nodeId, profile: "test" }]);
    const { identity, agent: file } = stateFiles(agent.stateDir);
    expect(readFileSync(file, "utf8")).toContain(key.kid);
    expect(readIdentity(stateFiles(agent.stateDir)).certificate.serial).toBe(api.serials.at(-1));
    expect(readFileSync(identity, "utf8")).toContain("PRIVATE KEY");
    await expect
      .poll(() => stateOf(agent.stateDir))
      .toMatchObject({ sent: null, recovered: null, unproved: null });
    const task = api.enqueue(api.sign({ task_type: "node.noop", params: { echo: "back" } }, key));
    await expect.poll(() => api.resultOf(task.task_id)).toMatchObject({ outcome: { result: { echo: "back" } } });
    expect(await metric(agent, "recovery_successes_total")).toBe(1);
    expect(await metric(agent, "recovery_token_expires_seconds")).toBeGreaterThan(Date.now() / 1000);
    const secrets = api.recovery.requests.map(({ token }) => token);
    for (const text of [agent.logged(), recorded(agent)])
      for (const one of secrets) expect(text).not.toContain(one);
  });

  it("ID-04 whose response is lost asks again with the same key, also after a restart", async () => {
    const api = await startFakeApi();
    const { stateDir, files } = await withToken(api);
    rmSync(files.identity);
    api.fault = (path) => (path === "/v1/recover" ? { do: "lose_answer" } : undefined);
    const agent = await startQuick(stateDir);
    await expect.poll(() => api.recovery.requests.length).toBeGreaterThan(0);
    await expect.poll(() => recorded(agent)).toContain("recovery_enrollment_blocked");
    await agent.stop();
    expect(stateOf(stateDir).sent).not.toBeNull();
    api.fault = () => undefined;
    await recovers(await startQuick(stateDir));
    const token = api.recovery.requests[0]?.token ?? "";
    expect(api.recovery.requests.length).toBeGreaterThanOrEqual(2);
    expect(api.recovery.keysOf(token)).toHaveLength(1);
    expect(api.recovery.requests.at(-1)).toMatchObject({ token, cause: "identity_lost" });
  });

  it("ID-04 that was given another one without knowing it goes on although the old one is replaced", async () => {
    const api = await shortLived();
    const { stateDir } = await withToken(api);
    api.fault = (path) => (path === "/v1/recover" ? { do: "lose_answer" } : undefined);
    const agent = await startQuick(stateDir);
    await expect.poll(() => recorded(agent)).toContain("identity_revoked");
    api.fault = () => undefined;
    await recovers(agent);
    expect(api.recovery.keysOf(api.recovery.requests[0]?.token ?? "")).toHaveLength(1);
  });

  it("ID-06 recovers over pinned roots when trust.pem was replaced by another CA's", async () => {
    const api = await startFakeApi();
    const { stateDir, files } = await withToken(api);
    writeFileSync(files.trust, (await makeAuthority()).rootPem);
    const agent = await startQuick(stateDir);
    await recovers(agent);
    expect(recorded(agent)).toContain("trust_bundle_invalid");
    expect(api.recovery.requests).toMatchObject([{ cause: "server_untrusted" }]);
    expect(readFileSync(files.trust, "utf8").trim()).toBe(api.authority.rootPem.trim());
    await expect.poll(() => api.heartbeats.length).toBeGreaterThan(0);
  });

  it("ID-06 of an agent that joined before recovery existed has its path pinned at the next start", async () => {
    const api = await startFakeApi();
    const stateDir = await joinedDirectory(api);
    const files = stateFiles(stateDir);
    const { recovery_api_url, ...older } = readAgentFile(files) ?? {};
    expect(recovery_api_url).toBe(api.url);
    for (const file of [files.recovery, files.recoveryRoots]) rmSync(file);
    writeFileSync(files.agent, JSON.stringify(older));
    const agent = await startQuick(stateDir);
    await expect.poll(() => api.heartbeats.length).toBeGreaterThan(0);
    await agent.stop();
    expect(readAgentFile(files)?.recovery_api_url).toBe(api.url);
    expect(readFileSync(files.recoveryRoots, "utf8")).toBe(readFileSync(files.trust, "utf8"));
    expect(api.heartbeats[0]?.recovery).toBeNull();
  });

  it("ID-16 does not recover while a renewed certificate works", async () => {
    const api = await shortLived();
    const { stateDir, files } = await withToken(api);
    const key = newPrivateKey();
    const chain = await api.authority.certify(certificateRequest(key, "n"), api.nodeId);
    writeCandidates(files, { identity: parseIdentity(privateKeyPem(key) + chain, "test") });
    const agent = await startQuick(stateDir);
    await expect.poll(() => api.heartbeats.length).toBeGreaterThan(1);
    expect(recorded(agent)).toContain("adopted: certificate");
    expect(api.recovery.requests).toEqual([]);
  });
});
