// Real servers on loopback: each breaks one hop.

import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer as createTcpServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer as createTlsServer, type TlsOptions } from "node:tls";
import type { EnvironmentProfile } from "@holdfast/contracts/node-protocol";
import { beforeAll, describe, expect, it } from "vitest";
import { atEnd } from "../../control-plane/test/support/at-end.ts";
import { lacks } from "../../scripts/facilities.mjs";
import { failureOf, noEndpoints, runTask } from "../test/run-task.ts";
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

  it("DIAG-02 shows the node's certificate to node-facing endpoints", async () => {
    const seen: (string | undefined)[] = [];
    const listener = createTlsServer({ ...server, ca: ours.cert, requestCert: true }, (socket) => {
      socket.on("error", () => {});
      seen.push(socket.getPeerCertificate().subject?.CN as string | undefined);
    });
    listener.on("tlsClientError", () => {});
    const port = await listen(listener);
    const node = issue(ours, "node-1", "DNS:node-1");
    const stateDir = stateDirWith({ "trust.pem": ours.cert, "identity.pem": node.key + node.cert });
    for (const endpoint of ["node_api", "node_terminal"]) {
      const report = await probeOne(endpoint, `https://127.0.0.1:${port}`, stateDir);
      expect(summary(report)).toEqual(["dns", "address", "tcp", "tls", "mtls"]);
      expect(report.ok).toBe(true);
    }
    await expect.poll(() => seen.filter((name) => name === "node-1")).toHaveLength(2);
    seen.length = 0;
    await probeOne("recovery", `https://localhost:${port}`, stateDir);
    expect(seen, "to no other").not.toContain("node-1");
  });

  it("DIAG-02 tells when the server does not accept it", async () => {
    const { port } = await tlsServer({ ...server, ca: ours.cert, requestCert: true, rejectUnauthorized: true });
    const stranger = issue(foreign, "stranger", "DNS:stranger");
    const stateDir = stateDirWith({ "trust.pem": ours.cert, "identity.pem": stranger.key + stranger.cert });
    const report = await probeOne("node_api", `https://localhost:${port}`, stateDir);
    expect(summary(report)).toEqual(["dns", "address", "tcp", "tls", "mtls: mtls_refused"]);
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
