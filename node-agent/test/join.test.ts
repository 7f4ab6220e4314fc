// Joining against the API's faulty twin, over real TLS.

import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join as joinPath } from "node:path";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { describe, expect, it, onTestFinished } from "vitest";
import { someFacts } from "../../testkit/agent/facts.ts";
import { keyDigest } from "../../testkit/agent/fake-authority.ts";
import { scratchDirectory } from "../../testkit/agent/scratch.ts";
import { readRing, ringPath } from "../src/diagnostics/ring-file.ts";
import { readAgentFile } from "../src/identity/agent-file.ts";
import { readIdentity } from "../src/identity/identity-file.ts";
import { checkedOrigin, join } from "../src/identity/join.ts";
import { stateFiles } from "../src/identity/state-directory.ts";
import { readTrust } from "../src/identity/trust-file.ts";
import { createLog } from "../src/log.ts";
import { type FakeApi, startFakeApi } from "./support/fake-api.ts";

const joining = (api: FakeApi, more: Partial<Parameters<typeof join>[0]> = {}) =>
  join({
    token: api.token(),
    apiUrl: api.url,
    stateDir: scratchDirectory(),
    facts: someFacts,
    attempts: 1,
    ...more,
  });

describe("agent join", () => {
  it("ID-02 leaves a node's identity that only its user can read, and no key of the join", async () => {
    const api = await startFakeApi();
    const stateDir = scratchDirectory();
    const joined = await joining(api, { stateDir, nodeName: "one" });
    const files = stateFiles(stateDir);
    expect(joined).toMatchObject({ nodeId: api.nodeId, nodeName: "one", nodeApiUrl: api.url, rekeyed: false });
    expect(readIdentity(files).nodeId).toBe(api.nodeId);
    expect(readAgentFile(files)).toMatchObject({ node_id: api.nodeId, api_url: api.url });
    expect(readTrust(files, [api.authority.rootSha256])).toHaveLength(1);
    for (const path of [files.identity, files.trust, files.agent]) expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(statSync(stateDir).mode & 0o777).toBe(0o700);
    expect(existsSync(files.enrolling)).toBe(false);
    expect(JSON.stringify(api.enrollments)).not.toContain("PRIVATE");
  });

  it("ID-01 tries again after a lost answer with the same key, and becomes the same node", async () => {
    const api = await startFakeApi();
    const stateDir = scratchDirectory();
    const token = api.token();
    api.fault = (path) => (path === "/v1/enroll" ? { do: "lose_answer" } : undefined);
    await expect(joining(api, { stateDir, token })).rejects.toMatchObject({ kind: "unreachable" });
    expect(existsSync(stateFiles(stateDir).enrolling)).toBe(true);
    api.fault = () => undefined;
    expect(await joining(api, { stateDir, token })).toMatchObject({ nodeId: api.nodeId });
    const keys = api.enrollments.map(({ body }) => keyDigest(String(body["csr"])));
    expect(keys).toHaveLength(2);
    expect(new Set(keys).size).toBe(1);
    expect(new Set(api.enrollments.map(({ nodeId }) => nodeId)).size).toBe(1);
  });

  it("AGENT-01 tries again by itself while nothing answers, and records why first", async () => {
    const api = await startFakeApi();
    const stateDir = scratchDirectory();
    const lines: string[] = [];
    const log = createLog({ write: (line) => lines.push(line) });
    let lost = 0;
    api.fault = (path) => (path === "/v1/enroll" && lost++ === 0 ? { do: "lose_answer" } : undefined);
    expect(await joining(api, { stateDir, attempts: 3, log })).toMatchObject({ nodeId: api.nodeId });
    expect(api.enrollments).toHaveLength(2);
    const kept = readRing(ringPath(stateDir));
    expect(kept).toMatchObject([
      { reason: "api_unreachable", detail: expect.stringContaining(api.url), count: 1 },
    ]);
    expect(lines).toEqual([expect.stringContaining('"reason":"api_unreachable"')]);
  });

  it("ID-01 makes a new key when the one kept got a certificate that has ended since", async () => {
    const api = await startFakeApi();
    const stateDir = scratchDirectory();
    const token = api.token("hfb_");
    api.fault = (path) => (path === "/v1/enroll" ? { do: "lose_answer" } : undefined);
    await expect(joining(api, { stateDir, token })).rejects.toMatchObject({ kind: "unreachable" });
    let refused = 0;
    const body = JSON.stringify({ code: "csr_invalid", message: "ended", next_step: "make a new key" });
    api.fault = (path) =>
      path === "/v1/enroll" && refused++ === 0 ? { do: "answer", status: 400, body } : undefined;
    expect(await joining(api, { stateDir, token })).toMatchObject({ nodeId: api.nodeId });
    const keys = api.enrollments.map((one) => keyDigest(String(one.body["csr"])));
    expect(new Set(keys).size).toBe(2);
    api.fault = (path) => (path === "/v1/enroll" ? { do: "answer", status: 400, body } : undefined);
    await expect(joining(api, { stateDir, token }), "not without end").rejects.toMatchObject({
      code: "csr_invalid",
    });
  });

  it("ID-01 ID-14 sends no token to a server whose certificate would not be valid here yet, and joins later", async () => {
    const api = await startFakeApi();
    const [token, stateDir] = [api.token(), scratchDirectory()];
    const date = (ms: number) => ({ date: new Date(Date.now() + ms).toUTCString() });
    const body = JSON.stringify({ roots: [api.authority.rootPem] });
    let aheadMs = 14 * 3_600_000;
    api.fault = (path) =>
      path === "/v1/trust-bundle" ? { do: "answer", status: 200, headers: date(aheadMs), body } : undefined;
    const refused = { kind: "refused", code: "clock_skew", reason: "clock_skew" };
    await expect(joining(api, { token, stateDir })).rejects.toMatchObject(refused);
    expect(api.enrollments).toEqual([]);
    // A little behind is what certificates are back-dated for; ahead does no harm.
    for (const harmless of [4 * 60_000, -14 * 3_600_000]) {
      aheadMs = harmless;
      expect(await joining(api, { stateDir })).toMatchObject({ nodeId: api.nodeId });
    }
  });

  it("ID-01 ID-14 keeps no certificate that is not valid yet", async () => {
    const api = await startFakeApi();
    const stateDir = scratchDirectory();
    const token = api.token();
    const certify = api.authority.certify;
    const notBefore = new Date(Date.now() + 14 * 3_600_000);
    api.authority.certify = (csr, nodeId) =>
      certify(csr, nodeId, { notBefore, notAfter: new Date(notBefore.getTime() + 1) });
    await expect(joining(api, { stateDir, token })).rejects.toMatchObject({ code: "clock_skew" });
    expect(existsSync(stateFiles(stateDir).identity)).toBe(false);
  });

  it("ID-01 sends nothing to a server whose root is not the token's", async () => {
    const [api, other] = [await startFakeApi(), await startFakeApi()];
    const stateDir = scratchDirectory();
    await expect(joining(api, { token: other.token(), stateDir })).rejects.toMatchObject({
      code: "ca_mismatch",
      kind: "refused",
      message: expect.stringContaining("somebody stands in between"),
    });
    expect(api.requests).toEqual(["/v1/trust-bundle"]);
    expect(existsSync(stateFiles(stateDir).identity)).toBe(false);
  });

  it("ID-01 sends no token to a server that shows the right root but cannot prove it", async () => {
    const [api, thief] = [await startFakeApi(), await startFakeApi()];
    // It repeats the public root of the real server, over a certificate of its own.
    const roots = JSON.stringify({ roots: [api.authority.rootPem] });
    thief.fault = (path) => (path === "/v1/trust-bundle" ? { do: "answer", status: 200, body: roots } : undefined);
    await expect(joining(thief, { token: api.token() })).rejects.toMatchObject({ code: "server_tls_untrusted" });
    expect(thief.requests).toEqual(["/v1/trust-bundle"]);
    // Nor does it help to be trusted by the host, as a company's proxy is.
    const before = getCACertificates("default");
    setDefaultCACertificates([...before, thief.authority.rootPem]);
    onTestFinished(() => setDefaultCACertificates(before));
    await expect(joining(thief, { token: api.token() })).rejects.toMatchObject({ code: "server_tls_untrusted" });
    expect(thief.requests).toEqual(["/v1/trust-bundle", "/v1/trust-bundle"]);
  });

  it("SEC-04 sends no token to a gateway of the same installation", async () => {
    const api = await startFakeApi();
    await api.stop();
    api.shows = await api.authority.gateway(["localhost", "127.0.0.1"]);
    await api.start();
    await expect(joining(api, { token: api.token() })).rejects.toMatchObject({ code: "server_tls_untrusted" });
    expect(api.requests).toEqual(["/v1/trust-bundle"]);
  });

  it.for([
    ["http://10.0.0.7:3001", "clear text"],
    ["http://holdfast.example.com", "clear text"],
    ["http://127.0.0.1.example.com", "clear text"],
    ["ftp://127.0.0.1", "https://"],
    ["127.0.0.1", "not an address"],
  ] as const)("ID-01 refuses %s", ([apiUrl, why]) => {
    expect(() => checkedOrigin(apiUrl)).toThrow(why);
  });

  it.for([
    "http://127.0.0.1:3001/",
    "http://localhost:3001",
    "http://[::1]:3001",
    "https://holdfast.example.com/x",
  ])("ID-01 takes %s", (apiUrl) => {
    expect(checkedOrigin(apiUrl)).toBe(new URL(apiUrl).origin);
  });

  it("ID-01 passes on what the server says about the token, and never the token", async () => {
    const api = await startFakeApi();
    const token = `hfe_${"x".repeat(43)}.${api.authority.rootDigest}`;
    const failure = await joining(api, { token }).catch((error: Error) => error);
    expect(failure).toMatchObject({ code: "enrollment_token_unknown", kind: "refused" });
    expect(failure).toMatchObject({ nextStep: "do something" });
    expect(String(failure)).not.toContain("xxxx");
  });

  it("ID-09 re-keys the node that the machine already is, and keeps its identity otherwise", async () => {
    const api = await startFakeApi();
    const stateDir = scratchDirectory();
    await joining(api, { stateDir });
    const before = readIdentity(stateFiles(stateDir));
    expect(await joining(api, { stateDir })).toMatchObject({ nodeId: api.nodeId, rekeyed: true });
    const rekeyed = readIdentity(stateFiles(stateDir));
    expect(api.enrollments[1]?.body["node_id"]).toBe(api.nodeId);
    expect(rekeyed.certificate.serial).not.toBe(before.certificate.serial);
    expect(rekeyed.keyPem).not.toBe(before.keyPem);
  });

  it("ID-09 does not overwrite an identity by that of another node, unless it is forced to", async () => {
    const api = await startFakeApi();
    const stateDir = scratchDirectory();
    await joining(api, { stateDir });
    const files = stateFiles(stateDir);
    const before = readFileSync(files.identity, "utf8");
    const token = api.token();
    api.ignoresNodeId = true;
    await expect(joining(api, { stateDir, token })).rejects.toMatchObject({ code: "already_a_node" });
    expect(readFileSync(files.identity, "utf8")).toBe(before);
    const forced = await joining(api, { stateDir, token, force: true });
    expect(forced.rekeyed).toBe(false);
    expect(forced.nodeId).not.toBe(api.nodeId);
    expect(readIdentity(files).nodeId).toBe(forced.nodeId);
  });

  it("ID-02 believes no certificate that is of another key or another CA", async () => {
    const [api, other] = [await startFakeApi(), await startFakeApi()];
    const stateDir = scratchDirectory();
    const certify = api.authority.certify;
    api.authority.certify = other.authority.certify;
    await expect(joining(api, { stateDir })).rejects.toThrow("does not chain to a trusted root");
    api.authority.certify = async (_csr, nodeId) => certify(String(api.enrollments[0]?.body["csr"]), nodeId);
    rmSync(stateFiles(stateDir).enrolling);
    await expect(joining(api, { stateDir })).rejects.toThrow("does not belong to the certificate");
    expect(existsSync(stateFiles(stateDir).identity)).toBe(false);
  });

  it("AGENT-05 names what is wrong with the state directory before anything is sent", async () => {
    const api = await startFakeApi();
    const parent = scratchDirectory();
    writeFileSync(joinPath(parent, "file"), "");
    await expect(joining(api, { stateDir: joinPath(parent, "file") })).rejects.toMatchObject({
      reason: "state_dir_read_only",
      message: expect.stringContaining("HOLDFAST_AGENT_STATE_DIR"),
    });
    mkdirSync(joinPath(parent, "open"), { mode: 0o755 });
    await joining(api, { stateDir: joinPath(parent, "open") });
    expect(statSync(joinPath(parent, "open")).mode & 0o777).toBe(0o700);
    expect(api.requests.filter((path) => path === "/v1/trust-bundle")).toHaveLength(1);
  });

  it("ID-01 tells an unreachable server from one that refuses", async () => {
    const api = await startFakeApi();
    const token = api.token();
    await api.stop();
    await expect(joining(api, { token })).rejects.toMatchObject({ kind: "unreachable", code: "api_unreachable" });
  });
});
