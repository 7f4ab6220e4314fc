// What `holdfast up` refuses, always with exit code 2, the name of what is wrong, and what to do.

import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { answers, type Installation, openInstallation } from "../../../testkit/processes/holdfast.ts";

let installation: Installation;
beforeAll(() => {
  installation = openInstallation();
});
afterAll(() => installation.cleanUp());

describe("holdfast up refuses", () => {
  it("OPS-01 a second start on the same data directory, and names who holds it", async () => {
    const up = installation.up();
    const { api_url } = await up.ready;
    const second = await installation.run(["up"]);
    expect(second.code).toBe(2);
    expect(second.stderr).toContain(`pid ${up.process.pid}`);
    expect(second.stderr).toContain(api_url);
    expect(second.stderr).toContain("holdfast down");
    expect(await answers(`${api_url}/readyz`), "the first goes on").toBe(true);
    up.process.kill("SIGTERM");
    await up.ended;
  });

  it("OPS-01 to start without the key of an existing database", async () => {
    const kek = join(installation.dataDir, "kek");
    renameSync(kek, `${kek}.away`);
    const refused = await installation.run(["up"]);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain(kek);
    expect(refused.stderr).toContain("HOLDFAST_KEK_BASE64");
    renameSync(`${kek}.away`, kek);
  });

  it("OPS-01 a taken port, and names its holder and the setting", async () => {
    const { server, port } = await listenSomewhere();
    const refused = await installation.run(["up"], { HOLDFAST_GATEWAY_PORT: String(port) });
    server.close();
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain(`Port ${port} for the gateway is in use by pid ${process.pid}`);
    expect(refused.stderr).toContain("HOLDFAST_GATEWAY_PORT");
    expect(installation.processes()).toEqual([]);
  });

  it("OPS-01 two settings with the same port", async () => {
    const { server, port } = await listenSomewhere();
    await new Promise((resolve) => server.close(resolve));
    const same = { HOLDFAST_API_PORT: String(port), HOLDFAST_GATEWAY_PORT: String(port) };
    const refused = await installation.run(["up"], same);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain(`HOLDFAST_API_PORT and HOLDFAST_GATEWAY_PORT are both ${port}`);
  });

  it("OPS-03 a wrong value, before anything starts, and warns about a mistyped name", async () => {
    const wrong = await installation.run(["up"], { HOLDFAST_API_PORT: "many" });
    expect(wrong.code).toBe(2);
    expect(wrong.stderr).toContain('HOLDFAST_API_PORT is "many"');
    const mistyped = await installation.run(["up"], { HOLDFAST_APY_PORT: "1", HOLDFAST_KEK_BASE64: "short" });
    expect(mistyped.code).toBe(2);
    expect(mistyped.stdout).toContain(
      "HOLDFAST_APY_PORT is not a setting of Holdfast; did you mean HOLDFAST_API_PORT?",
    );
    expect(mistyped.stderr, "a secret is not repeated").not.toContain("short");
  });

  it("OPS-01 a data directory that holds other things", async () => {
    const foreign = join(installation.dataDir, "../somebody");
    mkdirSync(foreign);
    writeFileSync(join(foreign, "letter.txt"), "dear all");
    const refused = await installation.run(["up"], { HOLDFAST_DATA_DIR: foreign });
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain(`${foreign} contains other files`);
  });

  it("OPS-01 to go on when a process finds its configuration wrong, with that process's words", async () => {
    const missing = { HOLDFAST_TLS_CERT_FILE: "/nowhere/cert.pem", HOLDFAST_TLS_KEY_FILE: "/nowhere/key.pem" };
    const refused = await installation.run(["up"], missing);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain("/nowhere/cert.pem");
    expect(installation.processes()).toEqual([]);
  });

  it("OPS-02 a database that does not answer, without showing its password", async () => {
    const refused = await installation.run(["up"], { DATABASE_URL: "postgres://me:geheim@127.0.0.1:1/nothing" });
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain("127.0.0.1:1");
    expect(refused.stderr + refused.stdout).not.toContain("geheim");
  });
});

async function listenSomewhere(): Promise<{ server: Server; port: number }> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { server, port: (server.address() as { port: number }).port };
}
