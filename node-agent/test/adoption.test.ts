// A whole agent that is offered something new: it keeps what works until the new one has worked, through wrong
// addresses, wrong clocks, refused certificates and crashes.

import { execFile } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { fileURLToPath } from "node:url";
import type { EnvironmentProfile } from "@holdfast/contracts/node/protocol";
import { certificateRequest, newPrivateKey, privateKeyPem } from "@holdfast/kit/certificate-request";
import { describe, expect, it } from "vitest";
import { joinedDirectory, startTestAgent, type TestAgent } from "../../testkit/agent/agent.ts";
import { makeAuthority } from "../../testkit/agent/fake-authority.ts";
import { scratchDirectory } from "../../testkit/agent/scratch.ts";
import { atEnd } from "../../testkit/lifetime/at-end.ts";
import type { AgentFile } from "../src/identity/agent-file.ts";
import { parseIdentity, readIdentity } from "../src/identity/identity-file.ts";
import { stateFiles } from "../src/identity/state-directory.ts";
import { openSession } from "../src/link/session.ts";
import { type FakeApi, startFakeApi } from "./support/fake-api.ts";

const HOUR = 3_600_000;
const quick = { HOLDFAST_AGENT_HEARTBEAT_SECONDS: "1" };
const startQuick = (stateDir: string) => startTestAgent({ stateDir }, { env: quick });
const isConnected = async (agent: TestAgent) =>
  JSON.parse((await agent.get("/healthz")).text).connected as boolean;
const connected = (agent: TestAgent) => expect.poll(() => isConnected(agent)).toBe(true);
const recorded = (agent: TestAgent) => readFileSync(`${agent.stateDir}/diagnostics.log`, "utf8");
const agentFile = (stateDir: string) => JSON.parse(readFileSync(stateFiles(stateDir).agent, "utf8")) as AgentFile;
const findings = (api: FakeApi) => api.heartbeats.at(-1)?.findings.map(({ reason }) => reason) ?? [];
const serialOf = (request: IncomingMessage) =>
  (request.socket as TLSSocket).getPeerX509Certificate()?.serialNumber.toLowerCase();
const published = (api: FakeApi, node_api: string): EnvironmentProfile => ({
  ...api.profile,
  version: api.profile.version + 1,
  endpoints: { ...api.profile.endpoints, node_api },
});
const more = async (api: FakeApi, count = 2) => {
  const before = api.heartbeats.length;
  await expect.poll(() => api.heartbeats.length).toBeGreaterThanOrEqual(before + count);
};
/** Takes no connection. */
const nowhere = async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  return `https://127.0.0.1:${port}`;
};
/** Another address of the same server, once it is opened. */
const secondAddress = async (api: FakeApi) => {
  const url = await nowhere();
  const sockets = new Set<Socket>();
  const relay = createServer((socket) => {
    const onward = connect(Number(new URL(api.url).port), "127.0.0.1");
    for (const one of [socket, onward]) sockets.add(one.on("error", () => undefined));
    socket.pipe(onward).pipe(socket);
  });
  const close = () => {
    relay.close();
    for (const one of sockets) one.destroy();
  };
  atEnd(close);
  return { url, close, open: () => once(relay.listen(Number(new URL(url).port), "127.0.0.1"), "listening") };
};

describe("a published address", () => {
  it("ID-16 that is wrong changes nothing, is reported, and the agent is normal after the repair", async () => {
    const api = await startFakeApi();
    const stateDir = await joinedDirectory(api);
    const right = api.url;
    const agent = await startQuick(stateDir);
    await connected(agent);
    api.profile = published(api, await nowhere());
    await expect.poll(() => findings(api)).toEqual(["endpoint_profile_drift", "identity_update_failed"]);
    expect(recorded(agent)).toContain("identity_update_failed");
    await agent.stop();
    const restarted = await startQuick(stateDir);
    await connected(restarted);
    await expect.poll(() => findings(api)).toContain("identity_update_failed");
    api.profile = published(api, right);
    await expect.poll(() => findings(api)).toEqual([]);
    expect(agentFile(stateDir)).toMatchObject({ profile: { version: 3 } });
    expect(agentFile(stateDir).node_api).toBeUndefined();
  });

  it("ID-16 that leads to a server of another CA is not used", async () => {
    const [api, other] = [await startFakeApi(), await startFakeApi()];
    const agent = await startQuick(await joinedDirectory(api));
    await connected(agent);
    api.profile = published(api, other.url);
    await expect.poll(() => recorded(agent)).toContain("server_tls_untrusted");
    await more(api);
    expect(other.requests).toEqual([]);
    expect(await isConnected(agent)).toBe(true);
  });

  it("ID-16 that works is used from then on", async () => {
    const api = await startFakeApi();
    const second = await secondAddress(api);
    await second.open();
    const agent = await startQuick(await joinedDirectory(api));
    await connected(agent);
    api.profile = published(api, second.url);
    await expect.poll(() => recorded(agent)).toContain(`adopted: address ${second.url}`);
    expect(agentFile(agent.stateDir).profile.endpoints["node_api"]).toBe(second.url);
    await more(api);
    expect(findings(api)).toEqual([]);
  });

  it("ID-16 that was written untried by an earlier version is left for the one where the node joined", async () => {
    const api = await startFakeApi();
    const stateDir = await joinedDirectory(api);
    const poisoned = agentFile(stateDir);
    poisoned.profile.endpoints["node_api"] = await nowhere();
    writeFileSync(stateFiles(stateDir).agent, JSON.stringify(poisoned));
    const agent = await startQuick(stateDir);
    await connected(agent);
    await expect.poll(() => findings(api)).toContain("endpoint_profile_drift");
    expect(agentFile(stateDir).node_api).toBe(api.url);
  });

  it("ID-16 that only works later is found when the present one stops working", async () => {
    const api = await startFakeApi();
    const [present, next] = [await secondAddress(api), await secondAddress(api)];
    await present.open();
    const stateDir = await joinedDirectory(api);
    // Joined elsewhere, so that nothing but the offer leads to the next address.
    const known = { ...agentFile(stateDir), api_url: await nowhere(), node_api: present.url };
    known.profile.endpoints["node_api"] = present.url;
    writeFileSync(stateFiles(stateDir).agent, JSON.stringify(known));
    api.profile = published(api, next.url);
    const agent = await startQuick(stateDir);
    await expect.poll(() => findings(api)).toContain("identity_update_failed");
    present.close();
    await expect.poll(() => isConnected(agent)).toBe(false);
    await next.open();
    await connected(agent);
    expect(recorded(agent)).toContain(`adopted: address ${next.url}`);
  });
});

describe("a new certificate", () => {
  /** More than half of its lifetime is over: it is renewed at once. */
  const due = { validityMs: 60_000 };

  it("ID-03 that the server refuses does not replace the present one, and is used once it is accepted", async () => {
    const api = await startFakeApi(due);
    const stateDir = await joinedDirectory(api);
    const files = stateFiles(stateDir);
    const before = readIdentity(files).certificate.serial;
    const refused = '{"code":"certificate_not_yet_valid","message":"not yet","next_step":"x"}';
    let refusing = true;
    api.fault = (_path, request) =>
      refusing && serialOf(request) !== before && serialOf(request) !== undefined
        ? { do: "answer", status: 401, body: refused }
        : undefined;
    api.renewedValidity = {};
    const agent = await startQuick(stateDir);
    await expect.poll(() => findings(api)).toContain("identity_update_failed");
    await more(api);
    expect(await isConnected(agent)).toBe(true);
    expect(readIdentity(files).certificate.serial).toBe(before);
    await agent.stop();
    expect(existsSync(files.next)).toBe(true);
    refusing = false;
    const restarted = await startQuick(stateDir);
    await expect.poll(() => restarted.logged()).toContain("certificate renewed");
    expect(readIdentity(files).certificate.serial).not.toBe(before);
    await expect.poll(() => existsSync(files.next)).toBe(false);
    await expect.poll(() => findings(api)).toEqual([]);
  });

  it("ID-03 ID-14 that begins in the future is not kept", async () => {
    const api = await startFakeApi(due);
    const notBefore = new Date(Date.now() + 14 * HOUR);
    api.renewedValidity = { notBefore, notAfter: new Date(notBefore.getTime() + 24 * HOUR) };
    const agent = await startQuick(await joinedDirectory(api));
    const files = stateFiles(agent.stateDir);
    const before = readIdentity(files).certificate.serial;
    await expect.poll(() => recorded(agent)).toContain("The server issued a certificate that is valid only from");
    await more(api);
    expect(readIdentity(files).certificate.serial).toBe(before);
    expect(existsSync(files.next)).toBe(false);
    expect(await isConnected(agent)).toBe(true);
  });

  it("ID-03 ID-14 is not asked for while the clocks disagree, and is when they agree again", async () => {
    const api = await startFakeApi(due);
    api.serverTime = () => Date.now() + 14 * HOUR;
    const agent = await startQuick(await joinedDirectory(api));
    await expect.poll(() => findings(api)).toContain("clock_skew");
    await more(api, 3);
    expect(api.requests).not.toContain("/renew");
    api.serverTime = Date.now;
    api.renewedValidity = {};
    await expect.poll(() => agent.logged()).toContain("certificate renewed");
  });

  it("ID-03 comes through although the published address is wrong", async () => {
    const api = await startFakeApi(due);
    const stateDir = await joinedDirectory(api);
    api.profile = published(api, await nowhere());
    api.renewedValidity = {};
    const agent = await startQuick(stateDir);
    await expect.poll(() => agent.logged()).toContain("certificate renewed");
    await expect.poll(() => findings(api)).toContain("identity_update_failed");
  });
});

describe("a new trust bundle", () => {
  it("ID-16 without the root that the server shows is not used", async () => {
    const [api, other] = [await startFakeApi(), await makeAuthority()];
    const stateDir = await joinedDirectory(api);
    const files = stateFiles(stateDir);
    const trusted = readFileSync(files.trust, "utf8");
    const session = openSession({ files, apiUrl: undefined, instanceId: crypto.randomUUID(), bootId: "b" });
    session.offer({ roots: [other.rootPem] });
    const agent = await startQuick(stateDir);
    await expect.poll(() => findings(api)).toContain("identity_update_failed");
    expect(readFileSync(files.trust, "utf8")).toBe(trusted);
    expect(await isConnected(agent)).toBe(true);
    session.offer({ roots: [other.rootPem, api.authority.rootPem] });
    await agent.stop();
    const restarted = await startQuick(stateDir);
    await expect.poll(() => recorded(restarted)).toContain("adopted: trust bundle");
    expect(readFileSync(files.trust, "utf8")).toContain(other.rootPem.trim());
  });
});

describe("adopting everything at once", () => {
  const program = fileURLToPath(new URL("support/adopt-and-die.ts", import.meta.url));
  const adoptUntil = (stateDir: string, offer: string, step: number) =>
    new Promise<{ steps: number | undefined }>((resolve) => {
      execFile(process.execPath, [program, stateDir, offer, String(step)], (error, stdout) =>
        resolve({ steps: error ? undefined : Number(stdout) }),
      );
    });

  it("ID-03 ID-16 survives a crash at every step, twice, and is finished by the next start", async () => {
    const [api, other] = [await startFakeApi(), await makeAuthority()];
    const second = await secondAddress(api);
    await second.open();
    const joined = await joinedDirectory(api);
    api.profile = {
      ...published(api, second.url),
      ca_sha256: [api.authority.rootSha256, other.rootSha256],
    };
    const key = newPrivateKey();
    const chain = await api.authority.certify(certificateRequest(key, "x"), api.nodeId);
    const way = {
      identity: parseIdentity(privateKeyPem(key) + chain, "test"),
      roots: [api.authority.rootPem, other.rootPem],
      profile: api.profile,
      apiUrl: second.url,
    };
    const offer = `${scratchDirectory()}/offer.json`;
    writeFileSync(offer, JSON.stringify(way));
    const copy = () => {
      const directory = scratchDirectory();
      cpSync(joined, directory, { recursive: true });
      return directory;
    };
    const { steps = 0 } = await adoptUntil(copy(), offer, 0);
    // The offer, four files in force, and the offer gone.
    expect(steps).toBe(6);
    for (let step = 1; step <= steps; step += 1) {
      const stateDir = copy();
      expect(await adoptUntil(stateDir, offer, step)).toEqual({ steps: undefined });
      expect(await adoptUntil(stateDir, offer, 1)).toEqual({ steps: undefined });
      const files = stateFiles(stateDir);
      const agent = await startQuick(stateDir);
      await connected(agent);
      // Killed before the offer was kept, it is what it was, and the server offers the profile again.
      await expect.poll(() => agentFile(stateDir).profile.version).toBe(2);
      await expect.poll(() => agentFile(stateDir).node_api).toBeUndefined();
      const serial =
        step === 1 ? readIdentity(stateFiles(joined)).certificate.serial : way.identity.certificate.serial;
      await expect.poll(() => readIdentity(files).certificate.serial).toBe(serial);
      await expect.poll(() => existsSync(files.next)).toBe(false);
      await agent.stop();
    }
  });

  it("ID-03 takes a certificate that was about to be tried when the present one's key file was lost", async () => {
    const api = await startFakeApi();
    const stateDir = await joinedDirectory(api);
    const files = stateFiles(stateDir);
    const open = () => openSession({ files, apiUrl: undefined, instanceId: crypto.randomUUID(), bootId: "b" });
    const key = newPrivateKey();
    const chain = await api.authority.certify(certificateRequest(key, "x"), api.nodeId);
    const identity = parseIdentity(privateKeyPem(key) + chain, "test");
    open().offer({ identity });
    rmSync(files.identity);
    const agent = await startQuick(stateDir);
    await connected(agent);
    expect(readIdentity(files)).toEqual(identity);
  });

  it("ID-16 reads a profile and a trust bundle that a crash left apart", async () => {
    const [api, other] = [await startFakeApi(), await makeAuthority()];
    const stateDir = await joinedDirectory(api);
    const files = stateFiles(stateDir);
    const open = () => openSession({ files, apiUrl: undefined, instanceId: crypto.randomUUID(), bootId: "b" });
    const profile = { ...published(api, api.url), ca_sha256: [other.rootSha256] };
    open().offer({ profile, roots: [other.rootPem] });
    writeFileSync(files.agent, JSON.stringify({ ...agentFile(stateDir), profile }));
    expect(open().present().roots).toEqual([other.rootPem]);
    expect(readFileSync(files.trust, "utf8")).toBe(other.rootPem);
  });
});
