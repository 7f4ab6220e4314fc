// `holdfast preflight` against a whole installation, with one thing broken at a time: the report names the hop, the signal and
// the owner, validates against the published schema, and the same command is ready after the repair.

import { execFile, execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { explainNode } from "@holdfast/contracts/endpoints/drift";
import { listNodes } from "@holdfast/contracts/endpoints/nodes";
import { getPreflight, listPreflights, startPreflight } from "@holdfast/contracts/endpoints/preflights";
import { PREFLIGHT_SCHEMA_PATH, type PreflightReport } from "@holdfast/contracts/preflight/report";
import { owners } from "@holdfast/contracts/reasons/owners";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { lacks } from "../../../scripts/facilities.mjs";
import { enrollGateway, SERVICE_TOKEN } from "../../../testkit/api/services.ts";
import { keepScreenshot, openChromium, withoutWebgl } from "../../../testkit/browser/browser.ts";
import { signIn } from "../support/at-page.ts";
import {
  type Front,
  openFront,
  openIdentityProxy,
  openOtherSite,
  openRateLimiter,
  openTlsEnd,
  type Standing,
} from "../support/edges.ts";
import { hangChild, openShells, type Shells } from "../support/shells.ts";

vi.setConfig({ testTimeout: 180_000 });

describe.skipIf(lacks("root") || lacks("openssl"))("a preflight", () => {
  let shells: Shells;
  let apiFront: Front;
  let publicFront: Front;
  let nodeFront: Front;
  let certificate: { cert: string; key: string };
  let ports: { api: number; public: number; node: number };
  let schema: z.ZodType;
  let env: Record<string, string>;
  let bin: string;
  const standing: Standing[] = [];
  const chromium = lacks("chromium") ? undefined : openChromium(withoutWebgl);

  beforeAll(async () => {
    [apiFront, publicFront, nodeFront] = await Promise.all([openFront(), openFront(), openFront()]);
    shells = await openShells({
      HOLDFAST_SERVICE_TOKEN: SERVICE_TOKEN,
      HOLDFAST_TERMINAL_OPEN_SECONDS: "15",
      HOLDFAST_GATEWAY_PUBLIC_URL: `http://127.0.0.1:${publicFront.port}`,
      HOLDFAST_NODE_TERMINAL_URL: `https://127.0.0.1:${nodeFront.port}`,
    });
    const ready = await shells.up.ready;
    const portOf = (url: string) => Number(new URL(url).port);
    ports = {
      ...{ api: portOf(ready.api_url), public: portOf(ready.gateway_url), node: portOf(ready.node_terminal_url) },
    };
    certificate = (await enrollGateway({ internalUrl: ready.api_internal_url })).tls as typeof certificate;
    const { token } = await shells.json<{ token: string }>(["token", "create", "--name", "t", "--role", "admin"]);
    bin = join(shells.scratch, "bin");
    env = { HOLDFAST_TOKEN: token, HOLDFAST_API_URL: `http://127.0.0.1:${apiFront.port}` };
    repair();
    const published: unknown = await (await fetch(`${ready.api_url}${PREFLIGHT_SCHEMA_PATH}`)).json();
    schema = z.fromJSONSchema(published as never);
  });
  afterAll(async () => {
    await shells.cleanUp();
    await Promise.all([apiFront, publicFront, nodeFront, ...standing].map((one) => one.stop()));
  });
  afterEach(() => repair());

  const repair = () => {
    apiFront.lead(ports.api);
    publicFront.lead(ports.public);
    nodeFront.lead(ports.node);
  };
  const stand = async (made: Promise<Standing>): Promise<number> => {
    const one = await made;
    standing.push(one);
    return one.port;
  };
  const both = () => ["--node-id", shells.node.id, "--allocation-id", shells.allocation.id];
  const onlyNode = () => ["--node-id", shells.node.id];

  async function preflight(args: string[], more: Record<string, string> = {}) {
    const { code, stdout, stderr } = await shells.run(["preflight", "--json", ...args], { ...env, ...more });
    if (code === 2) throw new Error(stderr);
    const report = JSON.parse(stdout) as PreflightReport;
    expect(schema.safeParse(report).error, "the published schema").toBeUndefined();
    expect(code).toBe(report.result === "ready" ? 0 : 1);
    return report;
  }
  const summary = ({ result, failed_hop, owner, classification, symptom_hop }: PreflightReport) => ({
    ...{ result, failed_hop, owner, symptom_hop, signal: classification?.signal ?? null },
  });
  const failure = (failed_hop: string, signal: string, owner: string, symptom_hop: string | null = null) => ({
    ...{ result: "failed", failed_hop, signal, owner, symptom_hop },
  });
  const online = () =>
    vi.waitUntil(
      async () => (await shells.operator()(listNodes, {})).items.some(({ connection }) => connection === "online"),
      { timeout: 100_000, interval: 200 },
    );

  /** Plays ssh: runs the remote command here, as it would be run by a shell there, and keeps what it was called with. */
  function standInSsh(): string {
    mkdirSync(bin, { recursive: true });
    const stateDir = join(shells.installation.dataDir, "agent");
    const log = join(shells.scratch, "ssh-arguments");
    writeFileSync(
      join(bin, "ssh"),
      `#!/bin/sh\nprintf '%s\\n' "$@" > '${log}'\nfor last; do :; done\nHOLDFAST_AGENT_STATE_DIR='${stateDir}' exec sh -c "$last"\n`,
    );
    writeFileSync(
      join(bin, "holdfast"),
      `#!/bin/sh\nexec '${process.execPath}' '${join(import.meta.dirname, "../../bin/holdfast.mjs")}' "$@"\n`,
    );
    for (const name of ["ssh", "holdfast"]) chmodSync(join(bin, name), 0o755);
    return log;
  }
  const withSsh = () => ({ PATH: `${bin}:${process.env["PATH"]}` });

  it("PRE-01 PRE-02 PRE-07 is ready in a healthy installation, hop by hop, and is stored with what it says", async () => {
    const report = await preflight(both());
    expect(report.hops.map(({ hop, status }) => `${hop} ${status}`)).toEqual(
      report.hops.map(({ hop }) => `${hop} passed`),
    );
    expect(report).toMatchObject({
      ...{ result: "ready", allocation_id: shells.allocation.id, node_id: shells.node.id, owner: null },
      ...{ hostname: expect.any(String), session_id: expect.any(String), correlation_id: expect.any(String) },
      disk: { used_percent: expect.any(Number), diagnostic_path_writable: true },
      expected: { node_terminal_url: `https://127.0.0.1:${nodeFront.port}`, profile: expect.any(String) },
    });
    const { items } = await shells.operator()(listPreflights, { query: { allocation_id: shells.allocation.id } });
    expect(items[0]).toMatchObject({ result: "ready", run_from: "command_line", report });
    await vi.waitUntil(async () => (await shells.terminals("open")).length === 0, { timeout: 60_000 });
    const { id } = await shells.operator()(startPreflight, {
      ...{ params: { node_id: shells.node.id }, body: { allocation_id: shells.allocation.id } },
    });
    const here = await vi.waitUntil(
      async () => {
        const run = await shells.operator()(getPreflight, { params: { preflight_id: id } });
        return run.state === "running" ? undefined : run;
      },
      { timeout: 100_000, interval: 200 },
    );
    expect(here, "the same checks, run by the api").toMatchObject({ result: "ready", run_from: "control_plane" });
    const route = here.report?.hops.find(({ hop }) => hop === "terminal_public_route");
    expect(route?.checked_from, "and it says from where").toBe("control_plane");
  });

  it("PRE-01 prints each hop as it is checked, then a table; without an allocation it checks the node", async () => {
    const { code, stdout, stderr } = await shells.run(["preflight", ...onlyNode()], env);
    expect(code, stderr).toBe(0);
    expect(stderr).toMatch(/node_heartbeat +ok/);
    expect(stdout).toMatch(/terminal_token_mint +not run +not requested/);
    expect(stdout).toContain("Ready: the node works.");
  });

  it("PRE-01 refuses wrong usage with 2", async () => {
    for (const args of [
      [],
      ["--node-id", "x", "--node-host", "-oProxyCommand=x"],
      [...onlyNode(), "--diagnostics", "/no/such/file"],
      [...onlyNode(), "--compare-profile", "/dev/null"],
      [...onlyNode(), "--bogus"],
    ]) {
      const { code, stderr } = await shells.run(["preflight", ...args], env);
      expect(code, stderr).not.toBe(0);
      if (args.length !== 4 || args[1] !== "x") expect(code, stderr).toBe(2);
    }
  });

  it("PRE-01 has the documented names of the runbook", async () => {
    // Not waited for in one turn: what stands before api and gateway runs in this process.
    const script = (name: string, args: string[], more: Record<string, string> = {}) =>
      new Promise<{ status: unknown; stdout: string; stderr: string }>((resolve) => {
        const path = join(import.meta.dirname, "../../../scripts/ops", name);
        const settings = { env: { ...shells.env, ...env, ...more } };
        execFile(path, args, settings, (error, stdout, stderr) =>
          resolve({ status: error?.code ?? 0, stdout, stderr }),
        );
      });
    const documented = await script("node_agent_terminal_preflight.sh", [...onlyNode(), "--json"]);
    expect(JSON.parse(documented.stdout)).toMatchObject({ result: "ready", node_id: shells.node.id });
    expect((await script("node_agent_terminal_preflight.sh", ["--bogus"])).status).toBe(2);
    const smoke = await script("pomerium_kind_ws_authenticated_smoke.sh", [...both(), "--json"]);
    expect(smoke.stderr).toContain("no edge authentication");
    expect(JSON.parse(smoke.stdout)).toMatchObject({ browser_proof: "no browser-equivalent proof" });
    expect((await script("pomerium_kind_ws_authenticated_smoke.sh", [])).status).toBe(2);
    expect((await script("reconcile_kind_external_node.sh", onlyNode())).status).toBe(2);
    standInSsh();
    const host = ["--node-host", "10.0.0.4", "--json"];
    const reconciled = await script("reconcile_kind_external_node.sh", [...onlyNode(), ...host], withSsh());
    expect(reconciled.stderr).not.toContain("hfbundle");
    expect(JSON.parse(reconciled.stdout.slice(reconciled.stdout.indexOf('{"format"')))).toMatchObject({
      ...{ node_id: shells.node.id, ssh: "succeeded" },
    });
  });

  it("PRE-02 names the api when it does not respond", async () => {
    // Nobody answers, and nobody takes the connection.
    for (const way of ["silent", "refused"] as const) {
      apiFront.lead(way);
      const report = await preflight(both());
      expect(summary(report)).toEqual(failure("allocation_binding", "control_plane_unreachable", "control_plane"));
      expect(report.hops.filter(({ status }) => status === "not_run")).toHaveLength(13);
    }
  });

  it("PRE-02 PRE-04 names the public route: a gateway that hangs, another site, a wrong address, a rate limit", async () => {
    const route = failure("terminal_public_route", "terminal_public_route_missing", "edge");
    const goOn = hangChild(shells, "gateway");
    expect(summary(await preflight(both()))).toEqual(route);
    goOn();
    publicFront.lead(await stand(openOtherSite()));
    expect(summary(await preflight(both()))).toEqual(route);
    const api = ["--terminal-base", `http://127.0.0.1:${ports.api}`];
    expect(summary(await preflight([...both(), ...api]))).toEqual(route);
    const limited = ["--terminal-base", `http://127.0.0.1:${await stand(openRateLimiter())}`];
    expect(summary(await preflight([...both(), ...limited]))).toEqual(
      failure("terminal_public_route", "edge_rate_limited", "edge"),
    );
    repair();
    expect((await preflight(both())).result).toBe("ready");
  });

  it("PRE-02 PRE-03 names the node's way to the terminal listener, and an edge that ends TLS there", async () => {
    nodeFront.lead("refused");
    expect(summary(await preflight(onlyNode()))).toEqual(
      failure("node_terminal_reachability", "terminal_node_stream_timeout", "endpoint_profile"),
    );
    const all = await preflight([...both(), "--all"]);
    expect(all.hops.filter(({ status }) => status === "failed")[0]).toMatchObject({
      hop: "node_terminal_reachability",
    });
    expect(all.hops.every(({ why }) => why !== "after_failure")).toBe(true);
    // Not as the profile's address: there, the platform's own canaries would find it first, sooner or later.
    standInSsh();
    const edge = await stand(openTlsEnd(certificate, () => ports.node));
    const args = [...onlyNode(), "--node-host", "10.0.0.4", "--node-terminal-url", `https://127.0.0.1:${edge}`];
    expect(summary(await preflight(args, withSsh()))).toEqual(
      failure("node_terminal_reachability", "terminal_env_profile_drift", "endpoint_profile"),
    );
    repair();
    expect((await preflight(onlyNode())).result).toBe("ready");
  });

  it("PRE-05 proves what a browser gets only with edge authentication, which no argument carries", async () => {
    const proxy = await stand(openIdentityProxy("edge=letmein", () => ports.public));
    const smoke = [...both(), "--run-ws-smoke", "--terminal-base", `http://127.0.0.1:${proxy}`];
    const without = await preflight(smoke);
    expect(without).toMatchObject({ result: "incomplete", browser_proof: "no browser-equivalent proof" });
    expect(without.hops.find(({ hop }) => hop === "terminal_public_route")?.detail).toContain(
      "no browser-equivalent proof",
    );
    const wrong = await preflight(smoke, { HOLDFAST_EDGE_COOKIE: "edge=wrong" });
    expect(wrong.browser_proof).toBe("no browser-equivalent proof");
    const file = join(shells.scratch, "cookie");
    writeFileSync(file, "edge=letmein\n");
    // The address of the page, from which the gateway accepts browsers.
    const { api_url } = await shells.up.ready;
    const proved = await preflight([...smoke, "--edge-cookie-file", file], { HOLDFAST_API_URL: api_url });
    expect(proved).toMatchObject({ result: "ready", browser_proof: "proved" });
    expect(JSON.stringify(proved)).not.toContain("letmein");
  });

  it("PRE-03 probes from the host over SSH, with a fixed command and private resolve addresses", async () => {
    const log = standInSsh();
    const { node_api_url } = await shells.up.ready;
    const named = (url: string) => `https://localhost:${new URL(url).port}`;
    const args = [
      ...[...onlyNode(), "--node-host", "10.0.0.4", "--node-user", "ubuntu"],
      ...["--node-runtime-api-url", named(node_api_url), "--node-runtime-resolve-address", "127.0.0.1"],
    ];
    const report = await preflight(args, withSsh());
    expect(summary(report).failed_hop).toBeNull();
    expect(report).toMatchObject({ ssh: "succeeded", disk: { diagnostic_path_writable: true } });
    const runtime = report.hops.find(({ hop }) => hop === "node_runtime_api_reachability");
    expect(runtime).toMatchObject({ status: "passed", checked_from: "node" });
    const called = readFileSync(log, "utf8");
    expect(called).toContain("BatchMode=yes");
    expect(called, "no address is part of the command").not.toContain("localhost");
    const broken = [...args.slice(0, -4), "--node-runtime-api-url", "https://node-api.invalid:18442"];
    const lost = await preflight([...broken, "--node-runtime-resolve-address", "127.0.0.1"], withSsh());
    expect(summary(lost)).toEqual(
      failure("node_runtime_api_reachability", "node_agent_api_unreachable", "environment_networking"),
    );
    const { evidence } = await shells.operator()(explainNode, { params: { node_id: shells.node.id } });
    expect(evidence.some(({ observer, kind }) => observer === "preflight" && kind === "ssh")).toBe(true);
  });

  it("PRE-02 compares with another environment: the profile is what drifted", async () => {
    standInSsh();
    nodeFront.lead("refused");
    const profile = join(shells.scratch, "other-profile.json");
    const node_terminal = `https://127.0.0.1:${ports.node}`;
    writeFileSync(profile, JSON.stringify({ name: "kind", endpoints: { node_terminal } }));
    const args = [...onlyNode(), "--node-host", "10.0.0.4", "--compare-profile", profile];
    const report = await preflight(args, withSsh());
    expect(summary(report)).toEqual(
      failure("node_terminal_reachability", "terminal_env_profile_drift", "endpoint_profile"),
    );
    expect(report.compared_with).toMatchObject({ environment: "kind", node_terminal_reachability: "passed" });
  });

  it("PRE-02 names a shell that does not start, and the same command is ready after the repair", async () => {
    execFileSync("userdel", [shells.allocation.username]);
    expect(summary(await preflight(both()))).toEqual(
      failure("workload_terminal_startup_failure", "terminal_pty_failed", "node_runtime"),
    );
    await shells.json(["allocation", "repair", shells.allocation.id]);
    expect((await preflight(both())).result).toBe("ready");
  });

  it.skipIf(!chromium)(
    "PRE-06 DASH-02 DASH-03 leads at the page from an error frame to its log line, a failed hop, the repair and a bundle",
    async () => {
      const { page, openTerminal } = await signIn(
        await (chromium as NonNullable<typeof chromium>).visit(),
        shells,
      );
      const { id, username } = shells.allocation;
      execFileSync("userdel", [username]);
      await openTerminal();
      const frame = page.locator('[role="alert"][data-code="terminal_pty_failed"]');
      await frame.getByRole("link", { name: "Show the whole story" }).click();
      const story = page.getByRole("list", { name: "Story" });
      await story.getByText("ended a terminal's client").first().waitFor();
      await story.getByText("terminal.fail").first().waitFor();
      await keepScreenshot(page, "story-of-an-error-frame");

      await page.goto(`${(await shells.up.ready).api_url}/allocations/${id}`);
      const card = page.getByRole("region", { name: "Preflight" });
      const run = card.getByRole("button", { name: "Run preflight" });
      await run.click();
      const hops = card.getByRole("list", { name: "Hops of the last preflight" }).getByRole("listitem");
      const broken = hops.filter({ hasText: "workload_terminal_startup_failure" });
      await broken.getByText("Failed", { exact: true }).waitFor();
      await card.getByText(`Owner: ${owners.node_runtime.title}.`).waitFor();
      await shells.json(["allocation", "repair", id]);
      await run.click();
      await card.getByRole("status").getByText("Ready").waitFor();

      const downloading = page.waitForEvent("download");
      await page.getByRole("button", { name: "Evidence bundle" }).click();
      const bundle = await (await downloading).path();
      const verified = await shells.run(["evidence", "verify", bundle, "--json"], env);
      expect(verified, verified.stderr).toMatchObject({ code: 0 });
    },
  );

  it("PRE-01 DRIFT-08 goes on from a silent node to its cause: the host's own record, where the server is blind", async () => {
    const goOn = hangChild(shells, "agent");
    await vi.waitUntil(
      async () =>
        (await shells.operator()(listNodes, {})).items.every(({ connection }) => connection !== "online"),
      { timeout: 170_000, interval: 500 },
    );
    expect(summary(await preflight(onlyNode()))).toEqual(
      failure("node_heartbeat", "node_agent_heartbeat_stale", "node_runtime"),
    );
    const record = join(shells.scratch, "diagnostics.log");
    const at = new Date().toISOString();
    const entry = {
      seq: 1,
      at,
      reason: "server_tls_untrusted",
      detail: "self-signed certificate",
      correlation_id: null,
    };
    writeFileSync(record, `torn li\n${JSON.stringify(entry)}\n`);
    const report = await preflight([...onlyNode(), "--diagnostics", record]);
    expect(summary(report)).toEqual(
      failure("node_runtime_api_reachability", "node_agent_api_tls_failed", "pki", "node_heartbeat"),
    );
    const { evidence } = await shells.operator()(explainNode, { params: { node_id: shells.node.id } });
    expect(evidence.some(({ kind, value }) => kind === "diagnostic" && value === "server_tls_untrusted")).toBe(
      true,
    );
    goOn();
    await online();
    expect((await preflight(both())).result).toBe("ready");
  });
});
