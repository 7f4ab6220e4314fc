// The whole lab, as `npm run chaos -- all` runs it, and that nothing of it is left, also when it is killed.

import { execFile, spawn } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import type { Evidence } from "../src/evidence.ts";
import { blindSpots, falsify } from "../src/falsify.ts";
import { judge } from "../src/judge.ts";
import type { DrillEvidence } from "../src/runbook/drill.ts";
import { allDrills } from "../src/runbook/drills/all.ts";
import { judgeDrill } from "../src/runbook/judge.ts";
import type { ScenarioResult } from "../src/scenario.ts";
import { allScenarios } from "../src/scenarios/all.ts";
import { printSecondTries } from "./print-second-tries.ts";

const program = fileURLToPath(new URL("../src/run.ts", import.meta.url));

function chaos(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [program, ...args], { maxBuffer: 2 ** 24 }, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
    );
  });
}

/** As the requirements have them, and not as the scenarios say of themselves. */
const expected: [name: string, hop: string, signal: string][] = [
  ["agent-stopped", "node_heartbeat", "node_agent_heartbeat_stale"],
  ["egress-dropped", "node_runtime_api_reachability", "node_agent_api_unreachable"],
  ["egress-rejected", "node_runtime_api_reachability", "node_agent_api_unreachable"],
  ["egress-one-way", "node_runtime_api_reachability", "node_agent_api_unreachable"],
  ["dns-refused", "node_runtime_api_reachability", "node_agent_api_unreachable"],
  ["dns-silent", "node_runtime_api_reachability", "node_agent_api_unreachable"],
  ["dns-wrong", "node_runtime_api_reachability", "node_agent_api_unreachable"],
  ["result-blocked", "latest_operation", "node_task_result_post_failed"],
  ["result-refused", "latest_operation", "node_task_result_post_failed"],
  ["certificate-rotated", "node_recovery_status", "node_agent_auth_failed"],
  ["certificate-rejected", "node_recovery_status", "node_agent_auth_failed"],
  ["trust-bundle-stale", "node_runtime_api_reachability", "node_agent_api_tls_failed"],
  ["agent-incompatible", "node_recovery_status", "node_agent_binary_invalid"],
  ["agent-outdated", "latest_operation", "node_task_claim_failed"],
  ["edge-429", "node_runtime_api_reachability", "edge_rate_limited"],
  ["half-open", "node_runtime_api_reachability", "node_agent_api_unreachable"],
  ["loss-and-delay", "node_runtime_api_reachability", "node_agent_link_slow"],
  ["api-killed", "node_runtime_api_reachability", "control_plane_unreachable"],
  ["postgres-restarted", "node_runtime_api_reachability", "control_plane_unreachable"],
  ["disk-full", "node_readiness", "disk_full"],
  ["clock-ahead", "node_readiness", "clock_skew"],
  ["clock-behind", "node_readiness", "clock_skew"],
];

const allNames = [...expected.map(([name]) => name), ...allDrills.map(({ name }) => name)].toSorted();

/** Those about the connection of an agent, which differ when it polls. */
const ofConnections = [
  "egress-dropped",
  "egress-rejected",
  "egress-one-way",
  "dns-refused",
  "half-open",
  "result-blocked",
];

/** Judged by what the agent records and, the first three, by what the dashboard says. */
const falsified = ["egress-rejected", "dns-refused", "trust-bundle-stale", "certificate-rotated"];

const unable =
  lacks("root") || lacks("nft") || lacks("dnsmasq") || lacks("faketime") || lacks("sshd") || lacks("redis");

describe.skipIf(unable)("the chaos lab", () => {
  let code = 0;
  let scenarios: ScenarioResult[] = [];
  let polling: ScenarioResult[] = [];
  let untrue: ScenarioResult[] = [];
  // One run for all of it: it makes one PostgreSQL, and what takes long runs side by side.
  beforeAll(async () => {
    const beside = [...ofConnections.map((name) => `${name}:poll`), ...falsified.map((name) => `${name}:falsify`)];
    const run = await chaos("all", ...beside, "--json");
    expect(run.stderr).toBe("");
    ({ code } = run);
    const results = (JSON.parse(run.stdout) as { scenarios: ScenarioResult[] }).scenarios;
    printSecondTries(results);
    scenarios = results.filter(({ link, falsify: isFalse }) => link === "stream" && !isFalse);
    polling = results.filter(({ link }) => link === "poll");
    untrue = results.filter((one) => one.falsify);
  }, 1_200_000);

  it.for(expected)("CHAOS-01 CHAOS-02 DRIFT-13 %s is seen at %s, as %s", ([name, hop, signal]) => {
    const result = scenarios.find((one) => one.name === name);
    expect(result?.problems).toEqual([]);
    expect(result).toMatchObject({ ok: true, hop, signal, correlation_id: expect.any(String) });
  });

  it.for(expected)("CHAOS-02 %s fails as soon as one field of its evidence is false", ([name]) => {
    const { evidence: gathered } = scenarios.find((one) => one.name === name) ?? {};
    const wanted = allScenarios.find((one) => one.name === name)?.expect;
    if (!gathered || !wanted) throw new Error(`${name} gathered nothing`);
    const evidence = gathered as Evidence;
    const judged = (one: Evidence) => judge(wanted, one);
    const lies = falsify(evidence);
    // Each sighting has more than twenty fields, and there are the looks and the retry.
    expect(lies.length).toBeGreaterThan(50);
    expect(blindSpots(judged, lies)).toEqual([]);
    expect(judged(evidence)).toEqual([]);
  });

  it.for(allDrills)(
    "CHAOS-01 CHAOS-02 drill $name: preflight before and after, user, dashboard, ids, cells",
    (drill) => {
      const result = scenarios.find((one) => one.name === drill.name);
      expect(result?.problems).toEqual([]);
      expect(result).toMatchObject({ ok: true, rows: drill.rows, hop: drill.expect.preflight.failed_hop });
      const evidence = result?.evidence as DrillEvidence;
      const judged = (one: DrillEvidence) => judgeDrill(drill, one);
      const lies = falsify(evidence);
      expect(lies.length).toBeGreaterThan(50);
      expect(blindSpots(judged, lies)).toEqual([]);
    },
  );

  it("CHAOS-02 notices an agent that records a false id, and a dashboard that names a false hop", () => {
    expect(code).toBe(1);
    expect(untrue.map(({ name, ok }) => [name, ok]).toSorted()).toEqual(
      falsified.map((name) => [name, false]).toSorted(),
    );
    for (const { name, problems } of untrue) {
      const said = problems.join("\n");
      expect(said, name).toMatch(/its id was made .* so it is not of this incident/);
      expect(said, name).toMatch(/delivered record is .*01900000-0000-7000-8000-000000000000/);
      if (name === "certificate-rotated") continue;
      const code = name === "trust-bundle-stale" ? "connection_lost" : "heartbeat_stale";
      expect(said, name).toContain(`dashboard ${code}: hop_detail is "tls"; it should be "heartbeat"`);
      expect(said, name).toContain(`dashboard ${code}: signal is "nonsense"`);
    }
  });

  it("CHAOS-01 CHAOS-02 is the same for agents that poll, as far as they can be observed", () => {
    expect(polling.flatMap(({ name, problems }) => problems.map((one) => `${name}: ${one}`))).toEqual([]);
    expect(polling.map(({ name, ok }) => [name, ok]).toSorted()).toEqual(
      ofConnections.map((name) => [name, true]).toSorted(),
    );
  });

  it("CHAOS-01 has no other scenario, and leaves nothing behind", () => {
    expect(scenarios.map(({ name }) => name).toSorted()).toEqual(allNames);
    expect(traces()).toEqual([]);
  });

  it("CHAOS-01 leaves nothing behind when it is killed", async () => {
    const runner = spawn(process.execPath, [program, "run", "egress-dropped"], { stdio: "ignore" });
    const world = () => worldOf(runner.pid ?? 0);
    await expect.poll(world).toBeDefined();
    const own = world();
    const members = () => processes().filter((pid) => namespaceOf(pid) === own);
    await expect.poll(() => members().length).toBeGreaterThan(8);
    runner.kill("SIGKILL");
    await expect.poll(members).toEqual([]);
    expect(traces()).toEqual([]);
  });
});

describe("npm run chaos", () => {
  it("CHAOS-01 lists what there is, and answers a wrong name with it", async () => {
    const list = await chaos("list", "--json");
    const names = (JSON.parse(list.stdout) as { scenarios: { name: string }[] }).scenarios.map(({ name }) => name);
    expect(names.toSorted()).toEqual(allNames);
    const wrong = await chaos("run", "dns-slow");
    expect(wrong).toMatchObject({ code: 2, stdout: "" });
    expect(wrong.stderr).toContain("There is no scenario dns-slow; there are: ");
    expect(wrong.stderr).toContain("dns-silent");
    const otherwise = await chaos("run", "dns-silent:pol");
    expect(otherwise).toMatchObject({ code: 2, stdout: "" });
    expect(otherwise.stderr).toContain("dns-silent:pol ends in pol; that can be poll or falsify.");
    expect(await chaos("all", "--jobs", "none")).toMatchObject({ code: 2 });
    expect(await chaos("burn")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("npm run chaos -- list"),
    });
  });
});

/** What a run may have left on the machine. */
function traces(): string[] {
  const links = readdirSync("/sys/class/net").filter((name) => name.startsWith("desk"));
  const mounts = readFileSync("/proc/self/mounts", "utf8")
    .split("\n")
    .filter((line) => /^tmpfs \/(mnt|srv|media|opt) /.test(line));
  return [...links, ...mounts];
}

function processes(): number[] {
  return readdirSync("/proc").map(Number).filter(Number.isInteger);
}

/** Of process ids. */
function namespaceOf(pid: number, which = "pid"): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/${which}`);
  } catch {
    return undefined;
  }
}

/** The namespace that a runner's own world has for its processes, once it is there. */
function worldOf(runner: number): string | undefined {
  const unshare = processes().find((pid) => parentOf(pid) === runner);
  const inner = unshare === undefined ? undefined : namespaceOf(unshare, "pid_for_children");
  return inner === namespaceOf(runner) ? undefined : inner;
}

function parentOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
  } catch {
    return undefined;
  }
}
