// `holdfast up` as whole processes: what it promises while it runs, and how it ends.

import { existsSync, readFileSync, statSync } from "node:fs";
import { gatewayNodeFlags } from "@holdfast/gateway/node-flags";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import {
  answers,
  type Installation,
  openInstallation,
  type Started,
  until,
} from "../../../testkit/processes/holdfast.ts";
import { readUpFile } from "../../src/up/up-file.ts";

let installation: Installation;
let up: Started;
beforeAll(() => {
  installation = openInstallation();
});
afterEach(async () => {
  up.process.kill("SIGTERM");
  await up.ended;
});
afterAll(() => installation.cleanUp());

describe("holdfast up", () => {
  it("OPS-01 runs api, gateway, worker, agent and PostgreSQL on free ports, and says where", async () => {
    up = installation.up();
    const ready = await up.ready;
    expect(ready).toMatchObject({
      data_dir: installation.dataDir,
      pid: up.process.pid,
      database: { embedded: true },
    });
    expect(ready.database.version).toMatch(/^18\./);
    expect(await answers(`${ready.api_url}/readyz`)).toBe(true);
    expect(await answers(`${ready.gateway_url}/healthz`)).toBe(true);
    expect(ready.node_api_url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
    await until(() => answers(`${installation.upFile().agent?.url}/healthz`));
    expect(Object.keys(installation.upFile().children)).toEqual(
      expect.arrayContaining(["api", "gateway", "worker"]),
    );
  });

  it("SEC-03 keeps its secrets to itself", async () => {
    up = installation.up();
    await up.ready;
    for (const name of ["kek", "operator-token", "up.json", "logs/api.log", "postgres/credentials.json"]) {
      expect(statSync(`${installation.dataDir}/${name}`).mode & 0o077, name).toBe(0);
    }
    expect(statSync(installation.dataDir).mode & 0o066).toBe(0);
    const environmentOf = (name: string) =>
      readFileSync(`/proc/${installation.upFile().children[name]?.pid}/environ`, "utf8");
    expect(environmentOf("gateway")).not.toMatch(/KEK|DATABASE_URL/);
    expect(environmentOf("worker")).not.toMatch(/KEK_BASE64|APP_DATABASE_URL|holdfast_owner/);
    expect(environmentOf("api")).not.toMatch(/holdfast_owner/);
    await until(() => "agent" in installation.upFile().children);
    expect(environmentOf("agent")).not.toMatch(/KEK|DATABASE_URL|TOKEN/);
    expect(environmentOf("api")).not.toContain(
      readFileSync(`${installation.dataDir}/operator-token`, "utf8").trim(),
    );
  });

  it("OPS-02 starts the gateway with the options of Node.js that bound its memory", async () => {
    up = installation.up();
    await up.ready;
    const { pid } = installation.upFile().children["gateway"] ?? {};
    expect(readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0")).toEqual(
      expect.arrayContaining([...gatewayNodeFlags]),
    );
  });

  it("EXEC-02 makes a token that dispatches steps, keeps it in a file, and `holdfast status` names the file", async () => {
    const dispatched = async (token: string) => {
      const headers = { "x-gateway-token": token, "content-type": "application/json" };
      const { gateway_internal_url } = await up.ready;
      const answer = await fetch(`${gateway_internal_url}/internal/v1/dispatch`, {
        ...{ method: "POST", headers, body: "{}" },
      });
      return answer.status;
    };
    up = installation.up({ HOLDFAST_UP_AGENT: "no" });
    await up.ready;
    const { gateway } = JSON.parse((await installation.run(["status", "--json"])).stdout);
    const file = `${installation.dataDir}/dispatch-token`;
    expect(gateway.dispatch_token_file).toBe(file);
    expect((await installation.run(["status"])).stdout).toContain(`with the token in ${file}.`);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const made = readFileSync(file, "utf8").trim();
    expect(await dispatched(made)).toBe(400);
    expect(await dispatched("another")).toBe(401);
  });

  it("OPS-01 ends with everything on Ctrl-C", async () => {
    up = installation.up();
    await up.ready;
    const running = installation.processes();
    expect(running.length).toBeGreaterThan(3);
    up.process.kill("SIGINT");
    expect(await up.ended).toMatchObject({ code: 0 });
    expect(installation.processes()).toEqual([]);
    expect(existsSync(`${installation.dataDir}/up.json`)).toBe(false);
  });

  it("OPS-01 can be stopped while it is still starting", async () => {
    up = installation.up();
    await until(() => installation.processes().length > 0);
    up.process.kill("SIGINT");
    expect(await up.ended).toMatchObject({ code: 0, stdout: "" });
    expect(installation.processes()).toEqual([]);
  });

  it("OPS-01 is stopped by `holdfast down` from elsewhere, which says when nothing runs", async () => {
    up = installation.up();
    await up.ready;
    const down = await installation.run(["down", "--json"]);
    expect(down.code).toBe(0);
    expect(JSON.parse(down.stdout)).toMatchObject({ stopped: true, pid: up.process.pid, left_over: [] });
    expect(await up.ended).toMatchObject({ code: 0 });
    expect(installation.processes()).toEqual([]);
    const again = await installation.run(["down"]);
    expect(again).toMatchObject({ code: 0, stdout: `Holdfast is not running on ${installation.dataDir}.\n` });
  });

  it("OPS-01 starts a killed api again on the same port", async () => {
    up = installation.up();
    const { api_url } = await up.ready;
    const first = installation.upFile().children["api"]?.pid ?? 0;
    process.kill(first, "SIGKILL");
    await until(() => installation.upFile().children["api"]?.pid !== first);
    await until(() => answers(`${api_url}/readyz`));
    expect(up.process.exitCode, "the supervisor goes on").toBeNull();
  });

  it("OPS-01 starts a killed PostgreSQL again, and the api finds it", async () => {
    up = installation.up();
    const { api_url } = await up.ready;
    const first = installation.postmaster();
    const api = installation.upFile().children["api"]?.pid;
    process.kill(first, "SIGKILL");
    await until(() => ![0, first].includes(installation.postmaster()));
    await until(() => answers(`${api_url}/readyz`));
    expect(installation.upFile().children["api"]?.pid, "the api kept running").toBe(api);
  });

  it("OPS-01 takes everything along when it is killed, and the next start recovers", async () => {
    up = installation.up();
    await up.ready;
    const running = installation.processes();
    up.process.kill("SIGKILL");
    await up.ended;
    up = installation.up();
    const { api_url } = await up.ready;
    const now = installation.processes().map(({ pid }) => pid);
    expect(running.filter(({ pid }) => now.includes(pid))).toEqual([]);
    expect(await answers(`${api_url}/readyz`)).toBe(true);
  });

  it("OPS-01 leaves no process when it is killed while its processes are loading", async () => {
    up = installation.up();
    await until(() => Object.keys(readUpFile(`${installation.dataDir}/up.json`)?.children ?? {}).length > 0);
    up.process.kill("SIGKILL");
    await up.ended;
    await until(() => installation.processes().length === 0);
    expect(existsSync(`${installation.dataDir}/up.json`), "what the next start reads").toBe(true);
  });

  it("OPS-01 `holdfast down` ends what a killed supervisor left behind", async () => {
    up = installation.up();
    await up.ready;
    up.process.kill("SIGKILL");
    const down = await installation.run(["down", "--json"]);
    expect(down.code).toBe(0);
    expect(installation.processes()).toEqual([]);
    expect(existsSync(`${installation.dataDir}/up.json`)).toBe(false);
  });

  it("OPS-01 runs twice side by side, with two data directories", async () => {
    const neighbour = openInstallation();
    up = installation.up();
    const other = neighbour.up();
    const [one, two] = await Promise.all([up.ready, other.ready]);
    expect(one.api_url).not.toBe(two.api_url);
    expect(await Promise.all([one, two].map((ready) => answers(`${ready.api_url}/readyz`)))).toEqual([true, true]);
    await neighbour.cleanUp();
    expect(await answers(`${one.api_url}/readyz`)).toBe(true);
  });
});
