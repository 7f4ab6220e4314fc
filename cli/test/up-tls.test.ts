// An installation whose listeners speak TLS, with a certificate for its public name only.

import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import { type Installation, openInstallation } from "./support/holdfast.ts";

let installation: Installation;
let env: Record<string, string>;
beforeAll(() => {
  installation = openInstallation();
  const directory = join(dirname(installation.dataDir), "tls");
  mkdirSync(directory);
  const [certificate, key] = [join(directory, "cert.pem"), join(directory, "key.pem")];
  const openssl = spawnSync("openssl", [
    ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"],
    ...["-subj", "/CN=holdfast.example.com", "-addext", "subjectAltName=DNS:holdfast.example.com"],
    ...["-keyout", key, "-out", certificate],
  ]);
  expect(String(openssl.stderr), "openssl").not.toContain("rror");
  env = {
    HOLDFAST_TLS_CERT_FILE: certificate,
    HOLDFAST_TLS_KEY_FILE: key,
    HOLDFAST_PUBLIC_URL: "https://holdfast.example.com",
  };
});
afterAll(() => installation.cleanUp());

describe.skipIf(lacks("openssl"))("with a certificate", () => {
  it("OPS-01 is reached by commands on the machine, which trust that certificate and no other", async () => {
    const { api_url } = await installation.up(env).ready;
    expect(api_url).toMatch(/^https:/);
    await expect(fetch(`${api_url}/healthz`)).rejects.toThrow();

    const status = await installation.run(["status", "--json"]);
    expect(JSON.parse(status.stdout)).toMatchObject({
      api: { ok: true, url: api_url },
      gateway: { ok: true },
      worker: { ok: true },
      database: { ok: true },
    });
    const token = await installation.run(["token", "create", "--name", "over tls", "--json"]);
    expect(JSON.parse(token.stdout).token).toMatch(/^hft_/);
    const link = await installation.run(["admin", "link", "--json"]);
    expect(JSON.parse(link.stdout).url).toMatch(/^https:\/\/holdfast\.example\.com\/link#hfl_/);

    const recorded = JSON.parse(readFileSync(join(installation.dataDir, "up.json"), "utf8"));
    expect(recorded.tls_cert_file).toBe(env["HOLDFAST_TLS_CERT_FILE"]);
  });
});
