// An installation whose listeners speak TLS, with a certificate for its public name only.

import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../../scripts/facilities.mjs";
import { type Installation, openInstallation, until } from "../../../testkit/processes/holdfast.ts";

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

  it.skipIf(lacks("root"))(
    "TERM-02 opens a terminal from the machine, where its public name leads nowhere",
    async () => {
      const user = `hft-${randomBytes(5).toString("hex")}`;
      const nodes = async () => JSON.parse((await installation.run(["node", "list", "--json"])).stdout).items;
      await until(async () => (await nodes())[0]?.connection === "online");
      const [node] = await nodes();
      const made = await installation.run(["allocation", "create", "--node", node.name, "--user", user, "--json"]);
      const shell = await installation.run(["terminal", `${user}@${node.name}`]);
      expect(shell).toMatchObject({ code: 0, stderr: "" });
      expect(shell.stdout).toContain(`${user}@`);
      const released = await installation.run(["allocation", "release", JSON.parse(made.stdout).id, "--json"]);
      expect(JSON.parse(released.stdout)).toMatchObject({ status: "released" });
    },
  );
});
