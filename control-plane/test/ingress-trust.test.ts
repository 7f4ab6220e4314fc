// Canary certificates through real proxies: nginx that verifies clients by the right CA, by another one and not at all, and a
// server that ends the handshake. A mismatch stops enrollment and renewal at the api that publishes such an address.

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { CallError } from "@holdfast/contracts/client";
import { listAudit } from "@holdfast/contracts/endpoints/audit";
import { createEnrollmentToken, enrollNode } from "@holdfast/contracts/endpoints/enrollment";
import { getPlatformStatus } from "@holdfast/contracts/endpoints/platform";
import { markOfIngressToken } from "@holdfast/service/service-proof";
import { beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import { createOrg, startTestApi, type TestApi, type TestOrg } from "../../testkit/api/api.ts";
import { enrollTestNode, hostFacts, makeKeyRequest, openClient } from "../../testkit/api/nodes.ts";
import { openRoles } from "../../testkit/database/database.ts";
import { atEnd } from "../../testkit/lifetime/at-end.ts";
import { freePorts } from "../../testkit/processes/free-ports.ts";
import type { Sql } from "../src/database/connect.ts";
import { type Authority, openAuthority, temporaryAuthority } from "../src/identity/authority.ts";
import { checkIngressTrust } from "../src/identity/ingress-trust/check.ts";
import { readKnown } from "../src/identity/ingress-trust/store.ts";
import { readKeyRequest } from "../src/identity/requests.ts";
import { openKeyring } from "../src/mechanisms/sealing/keyring.ts";

const without = lacks("nginx") || lacks("openssl");
const TOKEN = "an-ingress-token-of-at-least-thirty-two-characters";
/** As in `startTestApi`. */
const kek = { id: "local-1", key: Buffer.alloc(32, 7) };

let api: TestApi;
let org: TestOrg;
let system: Sql;
let superuser: Sql;
let authority: Authority;
/** Of the fronts. */
let ports: { ours: number; foreign: number; deaf: number; alert: number };
let front: Front;

beforeAll(async () => {
  if (without) return;
  api = await startTestApi({ env: { HOLDFAST_INGRESS_TOKEN: TOKEN } });
  ({ system, superuser } = openRoles(api.database));
  org = await createOrg(api, "kelp");
  const opened = await openAuthority(system, await openKeyring(system, { current: kek }), new Date());
  if (!opened) throw new Error("the api has a CA");
  authority = opened;
  const [ours, foreign, deaf, alert] = await freePorts<[number, number, number, number]>(4);
  ports = { ours, foreign, deaf, alert };
  front = await openFront();
  await Promise.all([front.start(), startAlerting()]);
});

const url = (port: number) => `https://localhost:${port}`;

type Front = { directory: string; start(): Promise<void>; foreignTrusts(pem: string): Promise<void> };

/** One nginx with three servers; each forwards what it accepts to the api, as an ingress. */
async function openFront(): Promise<Front> {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-canary-"));
  const file = (name: string, text: string) => writeFileSync(join(directory, name), text, { mode: 0o600 });
  mkdirSync(join(directory, "temp"));
  const { key, csr } = await makeKeyRequest();
  const { publicKey } = readKeyRequest(csr);
  const listener = { names: ["localhost"], publicKey };
  const ingress = { name: "front", mark: markOfIngressToken(TOKEN), publicKey, listener };
  const { chain, listenerChain } = authority.issueToIngress(ingress, new Date());
  file("ingress.pem", `${key}\n${chain}`);
  file("listener.pem", `${key}\n${listenerChain}`);
  file("ours.pem", authority.certificates.join("\n"));
  file("foreign.pem", temporaryAuthority(new Date()).certificates.join("\n"));
  const server = (port: number, verify: string) => `
    server {
      listen 127.0.0.1:${port} ssl;
      ssl_certificate ${directory}/listener.pem;
      ssl_certificate_key ${directory}/listener.pem;
      ${verify}
      location / {
        proxy_pass ${api.nodeUrl};
        proxy_ssl_certificate ${directory}/ingress.pem;
        proxy_ssl_certificate_key ${directory}/ingress.pem;
        proxy_set_header Host localhost;
        proxy_set_header X-Holdfast-Client-Certificate $ssl_client_escaped_cert;
      }
    }`;
  const verifies = (ca: string) =>
    `ssl_verify_client on; ssl_verify_depth 2; ssl_client_certificate ${directory}/${ca}.pem;`;
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (kind) => `${kind}_temp_path ${directory}/temp/${kind};`,
  );
  file(
    "nginx.conf",
    `daemon off; user root; worker_processes 1; pid ${directory}/nginx.pid; error_log ${directory}/error.log;
     events { worker_connections 64; }
     http { access_log off; ${temporary.join(" ")}
       ${server(ports.ours, verifies("ours"))} ${server(ports.foreign, verifies("foreign"))} ${server(ports.deaf, "")} }`,
  );
  let child: ChildProcess | undefined;
  atEnd(async () => {
    if (child?.exitCode === null) {
      child.kill("SIGTERM");
      await once(child, "exit");
    }
    rmSync(directory, { recursive: true, force: true });
  });
  return {
    directory,
    async start() {
      child = spawn("/usr/sbin/nginx", ["-c", join(directory, "nginx.conf"), "-p", directory], {
        stdio: "inherit",
      });
      await Promise.all([ports.ours, ports.foreign, ports.deaf].map(listening));
    },
    async foreignTrusts(pem) {
      file("foreign.pem", pem);
      child?.kill("SIGHUP");
    },
  };
}

/** Verifies clients by another CA, and ends the handshake of those that it does not know. */
async function startAlerting(): Promise<void> {
  const at = (name: string) => join(front.directory, name);
  const args = [
    "-accept",
    `127.0.0.1:${ports.alert}`,
    "-cert",
    at("listener.pem"),
    "-key",
    at("listener.pem"),
    "-www",
  ];
  const verify = ["-Verify", "2", "-verify_return_error", "-CAfile", at("foreign.pem"), "-quiet"];
  const server = spawn("/usr/bin/openssl", ["s_server", ...args, ...verify], { stdio: "ignore" });
  atEnd(() => void server.kill("SIGKILL"));
  await listening(ports.alert);
}

async function listening(port: number): Promise<void> {
  for (;;) {
    const socket = connect(port, "127.0.0.1");
    const isOpen = await new Promise<boolean>((resolve) => {
      socket.once("connect", () => resolve(true));
      socket.once("error", () => resolve(false));
    });
    socket.destroy();
    if (isOpen) return;
    await sleep(20);
  }
}

/** With what is known of this way alone. */
async function check(to: string) {
  const profile = {
    name: "default",
    version: 1,
    endpoints: { node_api: to },
    resolve: { localhost: ["127.0.0.1"] },
  };
  await superuser`DELETE FROM ingress_trust`;
  const trust = await checkIngressTrust(system, { authority, profile: { ...profile, ca_sha256: [] } });
  const { ways } = await readKnown(system);
  return { state: trust.state, way: ways.find((one) => one.url === to) };
}

describe.skipIf(without)("a canary certificate", () => {
  it("ID-11 arrives at the listener itself, and through an ingress that trusts the signing CA", async () => {
    expect(await check(api.nodeUrl)).toMatchObject({ state: "agrees", way: { ingress: null } });
    expect(await check(url(ports.ours))).toMatchObject({ state: "agrees", way: { ingress: "front" } });
  });

  it("ID-11 shows an ingress that trusts another CA, by nginx's page and by an alert", async () => {
    expect(await check(url(ports.foreign))).toMatchObject({
      ...{ state: "mismatch", way: { rejection: "it answered HTTP 400: The SSL certificate error" } },
    });
    expect(await check(url(ports.alert))).toMatchObject({
      ...{ state: "mismatch", way: { rejection: expect.stringMatching(/handshake: ERR_SSL_\w+ALERT/) } },
    });
  });

  it("ID-11 shows an ingress that drops certificates of clients", async () => {
    expect(await check(url(ports.deaf))).toMatchObject({
      ...{ state: "mismatch", way: { rejection: expect.stringContaining("does not forward") } },
    });
  });

  it("ID-11 that does not arrive shows nothing", async () => {
    const [nobody] = await freePorts<[number]>(1);
    expect(await check(url(nobody))).toMatchObject({ state: "unknown", way: { problem: /ECONNREFUSED/ } });
    expect(await check("https://no-such-host.invalid")).toMatchObject({ state: "unknown", way: { address: "" } });
  });

  it("ID-13 is nobody: it is no node, counts as no refusal, and opens nothing", async () => {
    const { cert, key } = authority.issueCanary("0199c0de-0000-7000-8000-000000000001", new Date());
    const client = openClient(api.nodeUrl, { ca: [...authority.trustBundle], cert, key });
    const node = await enrollTestNode(api, org.id);
    expect(await client.ask({ path: node.path("tasks/wait") })).toMatchObject({
      ...{ status: 401, body: { code: "certificate_unusable" } },
    });
    expect(await superuser`SELECT FROM audit_failures WHERE actor_id = ${node.id}`).toHaveLength(0);
    const bare = openClient(api.nodeUrl, { ca: [...authority.trustBundle] });
    expect((await bare.ask({ path: "/internal/v1/canary" })).body).toEqual({
      ...{ certificate: "none", canary: null, ingress: null },
    });
  });

  it("ID-11 has the form that OpenSSL accepts as a client's certificate", () => {
    const { cert } = authority.issueCanary("0199c0de-0000-7000-8000-000000000001", new Date());
    const [leaf = ""] = cert.split(/(?<=-----END CERTIFICATE-----\n)/);
    writeFileSync(join(front.directory, "canary.pem"), leaf);
    const files = ["-CAfile", join(front.directory, "ours.pem"), join(front.directory, "canary.pem")];
    const text = execFileSync("openssl", ["verify", "-purpose", "sslclient", ...files]);
    expect(text.toString()).toContain(": OK");
  });
});

const codeOf = (error: unknown) => (error instanceof CallError ? error.envelope.code : error);

describe.skipIf(without)("an api whose published address rejects its certificates", () => {
  it("ID-11 issues nothing, reports it, and goes on by itself when they agree", async () => {
    const node = await enrollTestNode(api, org.id);
    const { token } = await api.operator(org.id)(createEnrollmentToken, { body: {} });
    await superuser`DELETE FROM ingress_trust`;
    const env = { HOLDFAST_INGRESS_TOKEN: TOKEN, HOLDFAST_NODE_API_URL: url(ports.foreign) };
    const replica = await startTestApi({ database: api.database, env });
    const { csr } = await makeKeyRequest();
    const join = () =>
      replica
        .operator(org.id)(enrollNode, { body: { token, csr, facts: hostFacts } })
        .catch(codeOf);
    const client = openClient(replica.nodeUrl, node.tls);
    const renewal = await makeKeyRequest();
    const renew = () => client.ask({ method: "POST", path: node.path("renew"), body: { csr: renewal.csr } });

    await expect.poll(async () => (await renew()).body["code"]).toBe("ca_ingress_mismatch");
    expect((await renew()).body).toMatchObject({ details: { at: [url(ports.foreign)] } });
    expect(await join()).toBe("ca_ingress_mismatch");
    const { canaries } = await replica.operator()(getPlatformStatus, {});
    expect(canaries).toContainEqual(expect.objectContaining({ url: url(ports.foreign), state: "rejected" }));
    const { items } = await api.operator(org.id)(listAudit, { query: { action: "node.enroll" } });
    expect(items[0]).toMatchObject({ result: "failed", reason: "ca_ingress_mismatch" });
    // The node itself works: it came another way.
    expect((await client.ask({ path: node.path("identity") })).status).toBe(200);

    await front.foreignTrusts(authority.certificates.join("\n"));
    const forget = () => superuser`UPDATE ingress_trust SET rejected_at = rejected_at - interval '1 hour'`;
    await expect.poll(async () => forget().then(join), { interval: 500 }).toMatchObject({ org_id: org.id });
    expect((await renew()).status).toBe(200);
  });
});
