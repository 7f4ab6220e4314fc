// Real servers on loopback: each breaks one hop.

import { spawnSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttpsServer } from "node:https";
import { type AddressInfo, createServer as createTcpServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import tls, { createServer as createTlsServer, type TLSSocket, type TlsOptions } from "node:tls";
import { gatewayListeners, LISTENER_HEADER } from "@holdfast/contracts/headers";
import type { EnvironmentProfile } from "@holdfast/contracts/node/protocol";
import { beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import { atEnd } from "../../testkit/lifetime/at-end.ts";
import { failureOf, noEndpoints, runTask } from "../../testkit/tasks/run-task.ts";
import { HopFailed } from "./hops.ts";
import { allowedOf, type EndpointReport, probeEndpoint } from "./probe.ts";

const directory = mkdtempSync(join(tmpdir(), "holdfast-network-"));
atEnd(() => rmSync(directory, { recursive: true, force: true }));

type Pem = { key: string; cert: string };
let ours: Pem;
let server: Pem;
let foreign: Pem;

function profileOf(endpoints: Record<string, string>, resolve: Record<string, string[]> = {}): EnvironmentProfile {
  return { ...noEndpoints, name: "lab", version: 7, endpoints, resolve };
}

async function listen(listener: Server): Promise<number> {
  listener.listen(0, "127.0.0.1");
  atEnd(() => listener.close());
  await once(listener, "listening");
  return (listener.address() as AddressInfo).port;
}

async function tlsServer(options: TlsOptions): Promise<{ port: number; received: () => number }> {
  let received = 0;
  const listener = createTlsServer(options, (socket) => {
    socket.on("error", () => {});
    socket.on("data", (chunk) => (received += chunk.length));
  });
  listener.on("tlsClientError", () => {});
  return { port: await listen(listener), received: () => received };
}

function stateDirWith(files: Record<string, string>): string {
  const stateDir = mkdtempSync(join(directory, "state-"));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(stateDir, name), content);
  return stateDir;
}

async function probeOne(
  endpoint: string,
  url: string,
  stateDir = directory,
  hopMs = 20_000,
): Promise<EndpointReport> {
  const timing = { signal: new AbortController().signal, hopMs };
  return probeEndpoint(endpoint, { stateDir, profile: profileOf({ [endpoint]: url }), timing });
}

function summary({ hops }: EndpointReport): string[] {
  return hops.map(({ hop, ok, code }) => (ok ? hop : `${hop}: ${code}`));
}

describe("the way to an endpoint without TLS", () => {
  it("DIAG-02 is good when it connects", async () => {
    const port = await listen(createTcpServer((socket) => socket.on("error", () => {})));
    const report = await probeOne("public", `http://localhost:${port}/path?query`);
    expect(summary(report)).toEqual(["dns", "address", "tcp"]);
    expect(report).toMatchObject({ ok: true, host: "localhost", port, address: "127.0.0.1", certificate: null });
  });

  it("DIAG-02 ends at a port where nobody listens", async () => {
    const report = await probeOne("public", "http://127.0.0.1:1");
    expect(summary(report)).toEqual(["dns", "address", "tcp: tcp_refused"]);
    expect(report.ok).toBe(false);
  });

  it("DIAG-02 ends at a name that does not exist", async () => {
    const report = await probeOne("public", "https://no-such-host.invalid");
    expect(report).toMatchObject({ ok: false, port: 443, address: null });
    expect(summary(report)).toEqual([expect.stringMatching(/^dns: dns_(failed|timeout)$/)]);
  });

  it.for(["ftp://localhost", "not a url", "file:///etc/passwd"])("DIAG-02 does not understand %s", async (url) => {
    expect(summary(await probeOne("public", url))).toEqual(["dns: endpoint_invalid"]);
  });

  it.for([
    ["http://169.254.169.254/latest/meta-data", "metadata"],
    ["http://2852039166/", "metadata"],
    ["http://0xa9.0xfe.0xa9.0xfe/", "metadata"],
    ["http://[fe80::1]/", "link_local"],
    ["http://[fd00:ec2::254]/", "metadata"],
    ["http://[::ffff:169.254.1.1]/", "link_local"],
    ["http://0.0.0.0/", "unspecified"],
    ["http://224.0.0.1/", "multicast"],
  ])("DIAG-02 never connects to %s", async ([url = "", why = ""]) => {
    const report = await probeOne("public", url);
    expect(summary(report)).toEqual(["dns", "address: address_refused"]);
    expect(report.hops[1]?.detail).toContain(why);
  });

  it("DIAG-02 uses the profile's addresses for a name, checks them, and lets no name lead to loopback", async () => {
    const port = await listen(createTcpServer());
    const url = `http://node-api.test:${port}`;
    const timing = { signal: new AbortController().signal, hopMs: 20_000 };
    const probe = (addresses: string[]) =>
      probeEndpoint("public", {
        ...{ stateDir: directory, timing },
        profile: profileOf({ public: url }, { "node-api.test": addresses }),
      });
    const report = await probe(["127.0.0.1", "169.254.169.254"]);
    expect(summary(report)).toEqual(["dns", "address: address_refused"]);
    expect(report.addresses).toEqual(["127.0.0.1", "169.254.169.254"]);
  });

  it("DIAG-02 keeps the good among several addresses", () => {
    expect(allowedOf(["169.254.169.254", "10.0.0.1", "::1"], "api.example.com")).toEqual(["10.0.0.1"]);
    expect(allowedOf(["::1", "127.0.0.1"], "localhost")).toEqual(["::1", "127.0.0.1"]);
    expect(() => allowedOf(["127.0.0.1"], "api.example.com")).toThrow(HopFailed);
    expect(() => allowedOf([], "api.example.com")).toThrow(HopFailed);
  });

  it("DIAG-02 tries the next address of a name when one does not answer", async () => {
    const port = await listen(createTcpServer());
    const report = await probeEndpoint("public", {
      stateDir: directory,
      profile: profileOf({ public: `http://localhost:${port}` }, { localhost: ["::1", "127.0.0.1"] }),
      timing: { signal: new AbortController().signal, hopMs: 20_000 },
    });
    expect(report).toMatchObject({ ok: true, address: "127.0.0.1" });
  });
});

describe.skipIf(lacks("openssl"))("the way to an endpoint with TLS", () => {
  beforeAll(() => {
    ours = makeCa("ours");
    foreign = makeCa("foreign");
    server = issue(ours, "server", "DNS:localhost,IP:127.0.0.1");
  });

  it("DIAG-02 tells whose certificate it is and how long it lasts", async () => {
    const { port, received } = await tlsServer(server);
    const report = await probeOne(
      "recovery",
      `https://localhost:${port}`,
      stateDirWith({ "trust.pem": ours.cert }),
    );
    expect(summary(report)).toEqual(["dns", "address", "tcp", "tls"]);
    expect(report.certificate).toEqual({
      ...{ trusted_by: "trust_bundle", issuer: "ours", protocol: "TLSv1.3" },
      not_after: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    });
    expect(received(), "nothing is asked").toBe(0);
  });

  /** Asks for a certificate, lets everybody in, and answers for each request as our listeners do. */
  async function nodeListener() {
    const seen: (string | undefined)[] = [];
    const asked: string[] = [];
    const listener = createHttpsServer(
      { ...server, requestCert: true, rejectUnauthorized: false },
      (request, response) => {
        const shown = (request.socket as TLSSocket).getPeerX509Certificate();
        const accepted =
          shown !== undefined && new X509Certificate(shown.raw).checkIssued(new X509Certificate(ours.cert));
        asked.push(`${request.method} ${request.url}`);
        response.setHeader(LISTENER_HEADER, gatewayListeners.node);
        const waits = request.url?.includes("/tasks/wait?");
        if (accepted) response.end(JSON.stringify(waits ? { probe: true } : { node_id: NODE_ID }));
        else response.writeHead(401).end(JSON.stringify({ code: "certificate_untrusted", message: "secret" }));
      },
    );
    listener.on("secureConnection", (socket) => seen.push(socket.getPeerX509Certificate()?.subject));
    return { port: await listen(listener), seen, asked };
  }
  const NODE_ID = "01234567-89ab-4cde-8f01-23456789abcd";
  const nodeUri = `URI:holdfast://node/${NODE_ID}`;

  it("DIAG-02 presents the node's certificate to node-facing endpoints, and is told that it is accepted", async () => {
    const { port, seen, asked } = await nodeListener();
    const node = issue(ours, "node-1", nodeUri);
    const stateDir = stateDirWith({ "trust.pem": ours.cert, "identity.pem": node.key + node.cert });
    for (const [endpoint, more] of [
      ["node_api", ["task_wait"]],
      ["node_terminal", []],
    ] as const) {
      const report = await probeOne(endpoint, `https://127.0.0.1:${port}`, stateDir);
      expect(summary(report)).toEqual(["dns", "address", "tcp", "tls", "mtls", ...more]);
      expect(report.ok).toBe(true);
    }
    expect(seen.filter((name) => name === "CN=node-1")).toHaveLength(3);
    expect(new Set(asked), "nothing that takes a task").toEqual(
      new Set([
        `GET /internal/v1/nodes/${NODE_ID}/identity`,
        `GET /internal/v1/nodes/${NODE_ID}/tasks/wait?probe=true&wait=0`,
      ]),
    );
    seen.length = 0;
    await probeOne("recovery", `https://localhost:${port}`, stateDir);
    expect(seen, "to no other").not.toContain("CN=node-1");
  });

  it.for(["of another CA", "signed by itself"])(
    "DIAG-02 reports that a certificate %s is refused",
    async (which) => {
      const { port } = await nodeListener();
      const stranger = which === "of another CA" ? issue(foreign, "stranger", nodeUri) : makeCa("itself");
      const stateDir = stateDirWith({ "trust.pem": ours.cert, "identity.pem": stranger.key + stranger.cert });
      const report = await probeOne("node_api", `https://localhost:${port}`, stateDir);
      expect(summary(report)).toEqual(["dns", "address", "tcp", "tls", "mtls: mtls_refused"]);
      expect(report.hops.at(-1)?.detail).toBe("the server answered 401 certificate_untrusted");
      expect(report.ok).toBe(false);
    },
  );

  it("DIAG-02 takes nothing but the confirmation of the node's own id for acceptance", async () => {
    const node = issue(ours, "node-1", nodeUri);
    const stateDir = stateDirWith({ "trust.pem": ours.cert, "identity.pem": node.key + node.cert });
    const answers: [number, string, string][] = [
      [200, "<html>hello</html>", "mtls: mtls_failed"],
      [200, JSON.stringify({ node_id: "another" }), "mtls: mtls_failed"],
      [404, JSON.stringify({ code: "route_not_found" }), "mtls: wrong_listener"],
      [429, "", "mtls: rate_limited"],
      [503, "<h1>Too many requests</h1>", "mtls: rate_limited"],
      [200, "<html><title>Sign in</title><form></form></html>", "mtls: login_page"],
      [401, JSON.stringify({ code: "certificate_missing" }), "mtls: edge_ends_tls"],
      [401, JSON.stringify({ code: "cert_expired", details: { received_serial: "0a" } }), "mtls: edge_ends_tls"],
      [400, "No required SSL certificate was sent", "mtls: mtls_refused"],
      [503, "busy", "mtls: mtls_failed"],
      [403, JSON.stringify({ code: "node_mismatch" }), "mtls: mtls_refused"],
    ];
    for (const [status, body, hop] of answers) {
      const listener = createHttpsServer(
        { ...server, requestCert: true, rejectUnauthorized: false },
        (_, response) => {
          response.writeHead(status).end(body);
        },
      );
      const port = await listen(listener);
      expect(summary(await probeOne("node_api", `https://localhost:${port}`, stateDir)).at(-1)).toBe(hop);
    }
  });

  it("PRE-04 recognises an edge with a public certificate, and reaches no terminal through another listener", async () => {
    const node = issue(ours, "node-1", nodeUri);
    const stateDir = stateDirWith({ "trust.pem": ours.cert, "identity.pem": node.key + node.cert });
    const { port } = await tlsServer({ ...issue(foreign, "edge", "DNS:localhost"), ca: foreign.cert });
    const known = tls.getCACertificates("default");
    tls.setDefaultCACertificates([foreign.cert]);
    try {
      const atEdge = await probeOne("node_api", `https://localhost:${port}`, stateDir);
      expect(summary(atEdge).at(-1)).toBe("tls: edge_ends_tls");
    } finally {
      tls.setDefaultCACertificates(known);
    }
    const api = createHttpsServer({ ...server, requestCert: true, rejectUnauthorized: false }, (_, response) => {
      response.end(JSON.stringify({ node_id: NODE_ID }));
    });
    const elsewhere = await probeOne("node_terminal", `https://localhost:${await listen(api)}`, stateDir);
    expect(summary(elsewhere).at(-1)).toBe("mtls: wrong_listener");
  });

  it("PRE-03 recognises a proxy that cuts a request that is held", async () => {
    const node = issue(ours, "node-1", nodeUri);
    const stateDir = stateDirWith({ "trust.pem": ours.cert, "identity.pem": node.key + node.cert });
    const proxy = createHttpsServer(
      { ...server, requestCert: true, rejectUnauthorized: false },
      (request, response) => {
        if (request.url?.includes("/tasks/wait?")) request.socket.destroy();
        else response.end(JSON.stringify({ node_id: NODE_ID }));
      },
    );
    const report = await probeOne("node_api", `https://localhost:${await listen(proxy)}`, stateDir);
    expect(summary(report).slice(-2)).toEqual(["mtls", "task_wait: idle_cut"]);
  });

  it("DIAG-02 reports a server that ends the connection because of the certificate, and one that never answers", async () => {
    const stranger = issue(foreign, "stranger", nodeUri);
    const stateDir = stateDirWith({ "trust.pem": ours.cert, "identity.pem": stranger.key + stranger.cert });
    const strict = await tlsServer({ ...server, ca: ours.cert, requestCert: true, rejectUnauthorized: true });
    const refused = await probeOne("node_api", `https://localhost:${strict.port}`, stateDir);
    expect(summary(refused).at(-1)).toBe("mtls: mtls_refused");
    const mute = await tlsServer({ ...server, requestCert: true, rejectUnauthorized: false });
    const unanswered = await probeOne("node_api", `https://localhost:${mute.port}`, stateDir, 2_000);
    expect(summary(unanswered).at(-1)).toBe("mtls: mtls_timeout");
  });

  it("DIAG-02 ends at a certificate of another CA, and shows it nothing", async () => {
    const impostor = issue(foreign, "impostor", "DNS:localhost");
    const { port } = await tlsServer({ ...impostor, requestCert: true, rejectUnauthorized: false });
    const report = await probeOne(
      "node_api",
      `https://localhost:${port}`,
      stateDirWith({ "trust.pem": ours.cert }),
    );
    expect(summary(report)).toEqual(["dns", "address", "tcp", "tls: tls_untrusted"]);
    expect(report.hops.at(-1)?.detail).toMatch(/UNABLE_TO_VERIFY|SELF_SIGNED|UNABLE_TO_GET_ISSUER/);
    expect(report.certificate).toMatchObject({ trusted_by: null, issuer: "foreign" });
  });

  it("DIAG-02 ends at a certificate of another name", async () => {
    const { port } = await tlsServer(issue(ours, "other", "DNS:other.example.com"));
    const stateDir = stateDirWith({ "trust.pem": ours.cert });
    const report = await probeOne("node_api", `https://localhost:${port}`, stateDir);
    expect(report.hops.at(-1)).toMatchObject({ code: "tls_untrusted", detail: "ERR_TLS_CERT_ALTNAME_INVALID" });
  });

  it.for<Record<string, string>>([{}, { "trust.pem": "garbage" }])(
    "DIAG-02 says when there is nothing to trust: %o",
    async (files) => {
      const { port } = await tlsServer(server);
      const report = await probeOne("node_api", `https://localhost:${port}`, stateDirWith(files));
      expect(summary(report).at(-1)).toBe("tls: trust_bundle_missing");
    },
  );

  it.for<Record<string, string>>([{}, { "identity.pem": "garbage" }])(
    "DIAG-02 says when the node has no identity: %o",
    async (files) => {
      const { port } = await tlsServer(server);
      const stateDir = stateDirWith({ "trust.pem": ours.cert, ...files });
      expect(summary(await probeOne("node_api", `https://localhost:${port}`, stateDir)).at(-1)).toBe(
        "mtls: identity_missing",
      );
    },
  );

  it("DIAG-02 ends at something that does not speak TLS, or says nothing", async () => {
    const chatty = await listen(
      createTcpServer((socket) => {
        socket.on("error", () => {});
        socket.end("HTTP/1.1 400 Bad Request\r\n\r\nsecret of somebody");
      }),
    );
    const spoken = await probeOne("recovery", `https://localhost:${chatty}`);
    expect(summary(spoken).at(-1)).toBe("tls: tls_failed");
    expect(JSON.stringify(spoken), "nothing it says is passed on").not.toContain("secret");
    const silent = await listen(createTcpServer((socket) => socket.on("error", () => {})));
    // Each hop has this time: enough for those that come before.
    const unspoken = await probeOne("recovery", `https://localhost:${silent}`, directory, 2_000);
    expect(summary(unspoken).at(-1)).toBe("tls: tls_timeout");
  });
});

describe("the task", () => {
  it("DIAG-02 probes all endpoints of the profile, or those that are named", async () => {
    const port = await listen(createTcpServer());
    const profile = profileOf({ public: `http://127.0.0.1:${port}`, other: "http://169.254.169.254" });
    const all = await runTask("diag.network_probe", {}, { host: { profile } });
    expect(all.result).toMatchObject({
      profile: { name: "lab", version: 7 },
      ok: false,
      endpoints: [
        { name: "public", ok: true },
        { name: "other", ok: false },
      ],
    });
    expect(all.progress.at(-1)).toEqual({ done: 2, of: 2 });
    const one = await runTask("diag.network_probe", { endpoints: ["public", "public"] }, { host: { profile } });
    expect(one.result).toMatchObject({ ok: true, endpoints: [{ name: "public" }] });
  });

  it("DIAG-02 knows no other endpoints", async () => {
    const profile = profileOf({ public: "http://127.0.0.1" });
    for (const name of ["metadata", "constructor"]) {
      const failure = await failureOf(runTask("diag.network_probe", { endpoints: [name] }, { host: { profile } }));
      expect(failure).toMatchObject({ code: "endpoint_unknown", message: expect.stringContaining("public") });
    }
  });

  it.for(["http://169.254.169.254", "10.0.0.1", "localhost:22", "Node_API", ""])(
    "DIAG-02 takes no address in place of a name: %s",
    async (endpoint) => {
      await expect(runTask("diag.network_probe", { endpoints: [endpoint] })).rejects.toThrow();
    },
  );

  it("TASK-09 stops when it is cancelled, and closes its connections", async () => {
    const listener = createTcpServer((socket) => socket.on("error", () => {}));
    const port = await listen(listener);
    const cancel = new AbortController();
    const connected = once(listener, "connection");
    const profile = profileOf({ public: `https://127.0.0.1:${port}` });
    const run = runTask("diag.network_probe", {}, { host: { profile }, signal: cancel.signal });
    const [socket] = await connected;
    const closed = once(socket, "close");
    cancel.abort();
    await expect(run).rejects.toThrow("aborted");
    socket.resume();
    await closed;
  });
});

function openssl(...args: string[]): void {
  const { status, stderr } = spawnSync("openssl", args, { cwd: directory });
  if (status !== 0) throw new Error(String(stderr));
}

function readPem(name: string): Pem {
  const read = (extension: string) => readFileSync(join(directory, `${name}.${extension}`), "utf8");
  return { key: read("key"), cert: read("pem") };
}

const NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

function makeCa(name: string): Pem {
  openssl(
    "req",
    "-x509",
    ...NEW_KEY,
    "-days",
    "2",
    "-subj",
    `/CN=${name}`,
    "-keyout",
    `${name}.key`,
    "-out",
    `${name}.pem`,
  );
  return readPem(name);
}

function issue(ca: Pem, name: string, san: string): Pem {
  const by = ca === ours ? "ours" : "foreign";
  openssl(
    ...["req", "-x509", ...NEW_KEY, "-days", "1", "-subj", `/CN=${name}`, "-addext", `subjectAltName=${san}`],
    ...["-addext", "basicConstraints=critical,CA:FALSE", "-CA", `${by}.pem`, "-CAkey", `${by}.key`],
    ...["-keyout", `${name}.key`, "-out", `${name}.pem`],
  );
  return readPem(name);
}
