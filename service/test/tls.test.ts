// The listener over TLS, with a certificate made for the test.

import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { request as send } from "node:https";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { UsageError } from "@holdfast/kit/settings";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import { type Listener, startListener } from "./support/listener.ts";

let directory: string;
let listener: Listener;
let files: { tlsCertFile: string; tlsKeyFile: string };

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "holdfast-tls-"));
  files = makeCertificate("server");
  listener = await startListener({ exposure: { ...files, publicUrl: "https://holdfast.example.com" } });
});
afterAll(async () => {
  await listener.http.stop();
  rmSync(directory, { recursive: true, force: true });
});

function makeCertificate(name: string): { tlsCertFile: string; tlsKeyFile: string } {
  const made = { tlsCertFile: join(directory, `${name}.pem`), tlsKeyFile: join(directory, `${name}.key`) };
  const openssl = spawnSync("openssl", [
    ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"],
    ...["-subj", "/CN=holdfast test", "-addext", "subjectAltName=IP:127.0.0.1,DNS:holdfast.example.com"],
    ...["-keyout", made.tlsKeyFile, "-out", made.tlsCertFile],
  ]);
  if (openssl.status !== 0) throw new Error(String(openssl.stderr));
  return made;
}

async function get(path: string, headers: Record<string, string> = {}): Promise<IncomingMessage> {
  const ca = readFileSync(files.tlsCertFile);
  const [response] = await once(
    send(`${listener.url}${path}`, { ca, headers, agent: false, servername: "" }).end(),
    "response",
  );
  response.resume();
  return response as IncomingMessage;
}

describe.skipIf(lacks("openssl"))("over TLS", () => {
  it("SEC-03 serves https, and tells browsers to stay with it", async () => {
    const response = await get("/healthz");
    expect(response.statusCode).toBe(200);
    expect(response.headers["strict-transport-security"]).toBe("max-age=31536000");
    expect(response.headers["content-security-policy"]).toContain("default-src 'none'");
  });

  it("SEC-03 tells them with an error as well", async () => {
    for (const response of [
      await get("/nowhere"),
      await get("/healthz", { host: "evil.example" }),
      await get("/%zz"),
    ]) {
      expect(response.statusCode).toBeGreaterThanOrEqual(400);
      expect(response.headers["strict-transport-security"]).toBe("max-age=31536000");
    }
  });

  it("SEC-03 answers to the public name", async () => {
    expect((await get("/healthz", { host: "holdfast.example.com" })).statusCode).toBe(200);
  });

  it("SEC-03 speaks no clear text on the same port", async () => {
    await expect(fetch(`http://127.0.0.1:${listener.port}/healthz`)).rejects.toThrow();
  });

  it("OPS-02 ends in time, though somebody has connected and says nothing", async () => {
    const { http, port } = await startListener({
      exposure: { ...files, publicUrl: "https://holdfast.example.com" },
    });
    const accepted = once(http.app.server, "connection");
    const silent = connect(port, "127.0.0.1");
    await accepted;
    const ended = once(silent, "close");
    await http.stop();
    expect(await ended).toEqual([false]);
  });

  it("OPS-03 stops at files that are not there, not PEM, or not a pair, and names the setting", async () => {
    const garbage = join(directory, "garbage.pem");
    writeFileSync(garbage, "not a certificate");
    const other = makeCertificate("other");
    const wrong = [
      { ...files, tlsCertFile: "/nowhere/cert.pem" },
      { ...files, tlsKeyFile: "/nowhere/key.pem" },
      { ...files, tlsCertFile: garbage },
      { ...files, tlsKeyFile: garbage },
      { ...files, tlsKeyFile: other.tlsKeyFile },
    ];
    for (const exposure of wrong) {
      const error = await startListener({ exposure }).catch((reason: unknown) => reason);
      expect(error, JSON.stringify(exposure)).toBeInstanceOf(UsageError);
      expect((error as UsageError).message).toMatch(/HOLDFAST_TLS_(CERT|KEY)_FILE/);
    }
  });
});
