// The data directory goes away under a running installation, as when a disk loses its mount.

import { existsSync, renameSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { answers, type Installation, openInstallation, until } from "../../../testkit/processes/holdfast.ts";

let installation: Installation;
beforeAll(() => {
  installation = openInstallation();
});
afterAll(() => installation.cleanUp());

describe("a database that disappears", () => {
  it("OPS-01 is not replaced by an empty one, and found again when it is back", async () => {
    const started = installation.up();
    const { api_url } = await started.ready;
    let said = "";
    started.process.stderr?.on("data", (text) => {
      said += text;
    });
    const postgres = join(installation.dataDir, "postgres");
    const elsewhere = `${postgres}-elsewhere`;
    const postmaster = installation.postmaster();
    renameSync(postgres, elsewhere);
    process.kill(postmaster, "SIGKILL");
    await until(() => said.includes("has disappeared, and none is made in its place"));
    expect(existsSync(postgres)).toBe(false);
    expect(await answers(`${api_url}/healthz`)).toBe(true);
    expect(await answers(`${api_url}/readyz`)).toBe(false);

    renameSync(elsewhere, postgres);
    await until(() => answers(`${api_url}/readyz`));
    expect(said.match(/has disappeared/g), "said once").toHaveLength(1);
  });
});
