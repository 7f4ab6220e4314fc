// `holdfast agent diagnose` on state directories as they are found in the field.

import { execFileSync, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { chmodSync, chownSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { certificateRequest, newPrivateKey, privateKeyPem } from "@holdfast/kit/certificate-request";
import { identify } from "@holdfast/kit/processes";
import { describe, expect, it } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import { makeAuthority } from "../../testkit/agent/fake-authority.ts";
import { scratchDirectory } from "../../testkit/agent/scratch.ts";
import { atEnd } from "../../testkit/lifetime/at-end.ts";
import { explain, lookAt } from "../src/diagnostics/explain.ts";
import { openDiagnostics } from "../src/diagnostics/ring.ts";
import { selfCheck } from "../src/diagnostics/self-checks.ts";
import { writeAgentFile } from "../src/identity/agent-file.ts";
import { writeIdentity } from "../src/identity/identity-file.ts";
import { stateFiles } from "../src/identity/state-directory.ts";
import { writeTrust } from "../src/identity/trust-file.ts";
import { openJournal } from "../src/journal/journal.ts";
import { createLog } from "../src/log.ts";
import { gatewayNotePath, makeDirectory, shellName } from "../src/terminals/directory.ts";
import { smallFileSystem } from "./support/small-file-system.ts";

const NODE = "01a1e13c-bc3d-71c5-9b58-aada3c2346d4";
const HOUR = 3_600_000;
const authority = await makeAuthority();
const foreign = await makeAuthority();
const log = createLog({ write: () => {} });
const instanceId = "3b241101-e2bb-4255-8caf-4136c566a962";
const endpoints = { public: "https://holdfast.example.com" };

/** A state directory as a join leaves it. */
async function enrolled({ directory = scratchDirectory(), nodeId = NODE, validity = {} } = {}): Promise<string> {
  const files = stateFiles(directory);
  const key = newPrivateKey();
  const chainPem = await authority.certify(certificateRequest(key, "x"), nodeId, validity);
  writeIdentity(files, { keyPem: privateKeyPem(key), chainPem });
  writeTrust(files, [authority.rootPem]);
  writeAgentFile(files, {
    node_id: NODE,
    org_id: "org",
    node_name: "web-1",
    api_url: "https://api.example.com:18442",
    profile: { name: "default", version: 1, endpoints, resolve: {}, ca_sha256: [authority.rootSha256] },
    verifiers: { keys: [] },
  });
  return directory;
}

function look(directory: string) {
  const now = Date.now();
  const picture = lookAt(directory, { now, diskPressurePercent: 100 });
  return {
    picture,
    // Most of these do not run, which is a finding of its own.
    reasons: picture.findings.map(({ reason }) => reason).filter((reason) => reason !== "agent_down"),
    text: explain(picture, now).join("\n"),
  };
}

function check(stateDir: string): string[] {
  const nothing = { clockSkewSeconds: undefined, diskPressurePercent: 100 };
  return selfCheck({ stateDir, now: Date.now(), ...nothing }).map(({ reason }) => reason);
}

describe("holdfast agent diagnose", () => {
  it("names the terminals that are open, and whether their gateway was reached", async () => {
    const directory = await enrolled();
    expect(look(directory).text).toContain("none open; the terminal gateway was not dialled yet");
    const terminals = makeDirectory(directory);
    const own = identify(process.pid) ?? { pid: 0, startTicks: "0" };
    const [alive, dead] = [randomUUID(), randomUUID()];
    writeFileSync(join(terminals, shellName(alive, own)), "");
    writeFileSync(join(terminals, shellName(dead, { ...own, startTicks: "1" })), "");
    const note = { url: "https://gw:18443", at: "2030-01-01T00:00:00Z", reached: false, detail: "ECONNREFUSED" };
    writeFileSync(gatewayNotePath(directory), JSON.stringify(note));
    const { picture, text } = look(directory);
    expect(picture.terminals).toMatchObject({ open: [{ session_id: alive, pid: process.pid }], gateway: note });
    expect(text).toContain(
      `1 open: ${alive} for 0 seconds; the terminal gateway https://gw:18443 cannot be reached`,
    );
    expect(text).not.toContain(dead);
    writeFileSync(gatewayNotePath(directory), "{");
    expect(look(directory).picture.terminals.gateway).toBeNull();
  });

  it("AGENT-05 DRIFT-13 a healthy node that does not run", async () => {
    const directory = await enrolled();
    const { picture, reasons, text } = look(directory);
    expect(reasons).toEqual([]);
    expect(check(directory)).toEqual([]);
    expect(picture).toMatchObject({ state: "enrolled", running_pid: null, node: { id: NODE, name: "web-1" } });
    expect(text).toContain(`web-1 (${NODE})`);
    expect(text).toContain("https://api.example.com:18442");
    expect(picture.findings).toMatchObject([
      {
        reason: "agent_down",
        hop: "node_recovery_status",
        hop_detail: "agent_process",
        signal: "node_agent_process_down",
        owner: "node",
      },
    ]);
    expect(text).toMatch(/Process +not running\n/);
    expect(text).toContain("Start it: `holdfast agent run`");
    expect(text).toContain("valid until");
  });

  it("AGENT-01 a running agent with unsent results, an unfinished task and a history", async () => {
    const directory = await enrolled();
    const journal = openJournal(directory, { sizeBytes: 64 * 1024 });
    const task = { generation: 1, expires_at: "2100-01-01T00:00:00.000Z", idempotent: false, resultBytes: 100 };
    journal.claimed({ ...task, task_id: "first", type: "a.first" });
    await journal.result({
      task_id: "first",
      generation: 1,
      timings: {},
      outcome: { status: "succeeded", result: 1 },
    });
    journal.claimed({ ...task, task_id: "second", type: "a.second" });
    await journal.started("second");
    const diagnostics = openDiagnostics(directory, { log, instanceId });
    diagnostics.record("process_alive", "connected");
    for (let number = 0; number < 3; number += 1) diagnostics.record("api_unreachable", "ECONNREFUSED");
    const running = look(directory);
    expect(running.picture).toMatchObject({ running_pid: process.pid, last_problem: { owner: "network" } });
    expect(running.picture.journal).toMatchObject({ unsent_results: 1, unfinished: [{ type: "a.second" }] });
    expect(running.picture.findings).toEqual([]);
    diagnostics.record("task_result_failed", "api_unreachable: ECONNREFUSED");
    expect(look(directory).picture.findings).toMatchObject([
      {
        reason: "task_result_failed",
        hop: "latest_operation",
        hop_detail: "task_result",
        signal: "node_task_result_post_failed",
      },
    ]);
    expect(running.text).toContain(`running, pid ${process.pid}`);
    expect(running.text).toContain("1 result waits for delivery; running now: a.second (second)");
    expect(running.text).toMatch(
      /Server unreachable \(api_unreachable\): This host cannot reach the server.*\n.*hop +node_runtime_api_reachability \(tcp\), signal node_agent_api_unreachable\n.*ECONNREFUSED \(3 times.*\n.*network/,
    );
    expect(running.text).toMatch(/newest first:\n.*api_unreachable.*\n.*process_alive/);
    diagnostics.record("process_alive", "connected again");
    diagnostics.record("task_refused", "task_expired: task third");
    await journal.close();
    const stopped = look(directory);
    expect(stopped.picture).toMatchObject({ running_pid: null, last_problem: null });
    expect(stopped.text).toContain("cut short, to be reported as interrupted: a.second (second)");
    diagnostics.close();
  });

  it("AGENT-05 OPS-04 an expired certificate: what, who, what next, and its runbook", async () => {
    const validity = { notBefore: new Date(Date.now() - 96 * HOUR), notAfter: new Date(Date.now() - 72 * HOUR) };
    const { reasons, text } = look(await enrolled({ validity }));
    expect(reasons).toEqual(["cert_expired"]);
    expect(text).toMatch(/Certificate +expired at .*, 3 days ago/);
    expect(text).toMatch(/who +the operator of this host\n +next +Check the clock first/);
    expect(text).toContain("\n    runbook https://holdfast.example.com/runbooks/cert_expired\n");
  });

  it("AGENT-05 a clock that was ahead and is right again", async () => {
    const directory = await enrolled();
    let now = Date.now() + HOUR;
    const diagnostics = openDiagnostics(directory, { log, instanceId, now: () => now });
    diagnostics.record("clock_skew", "this host's clock is 1 hour ahead");
    now -= HOUR;
    expect(look(directory).picture.last_problem).toMatchObject({
      reason: "clock_skew",
      hop: "node_readiness",
      hop_detail: "host_clock",
    });
    diagnostics.record("process_alive", "no longer found: clock_skew");
    diagnostics.close();
    expect(look(directory).picture.last_problem).toBeNull();
  });

  it("AGENT-05 one problem that is over, and another that is not", async () => {
    const directory = await enrolled();
    const diagnostics = openDiagnostics(directory, { log, instanceId });
    diagnostics.record("process_alive", "connected to https://api.example.com:18442");
    diagnostics.record("clock_skew", "this host's clock is 1 hour ahead");
    diagnostics.record("link_slow", "heartbeats take 4 s");
    diagnostics.record("process_alive", "no longer found: link_slow");
    expect(look(directory).picture.last_problem).toMatchObject({ reason: "clock_skew" });
    diagnostics.record("process_alive", "no longer found: clock_skew");
    expect(look(directory).picture.last_problem).toBeNull();
    diagnostics.close();
  });

  it("AGENT-05 a machine that never joined", () => {
    for (const directory of [scratchDirectory(), join(scratchDirectory(), "missing")]) {
      const { picture, text } = look(directory);
      expect(picture).toMatchObject({ state: "not_enrolled", findings: [] });
      expect(text).toContain("holdfast node token create");
    }
  });

  it("AGENT-01 a machine that could not join by itself", () => {
    const directory = scratchDirectory();
    const diagnostics = openDiagnostics(directory, { log, instanceId });
    diagnostics.record("recovery_enrollment_blocked", "enrollment_token_expired: make a new one");
    diagnostics.close();
    const { picture, reasons, text } = look(directory);
    expect(picture).toMatchObject({ state: "not_enrolled", last_problem: { owner: "platform" } });
    expect(reasons).toEqual([]);
    expect(text).toMatch(
      /not a node yet.*\n\nWhat is wrong:\n.*recovery_enrollment_blocked.*\n.*\n.*token_expired/,
    );
    expect(text).toMatch(/newest first:\n.*recovery_enrollment_blocked/);
  });

  it.for<[string, (directory: string) => void, string[], string]>([
    [
      "no key file",
      (at) => rmSync(join(at, "identity.pem")),
      ["identity_key_missing"],
      "identity.pem is not there",
    ],
    [
      "an empty key file",
      (at) => writeFileSync(join(at, "identity.pem"), ""),
      ["identity_key_missing"],
      "does not hold",
    ],
    [
      "a foreign CA",
      (at) => writeTrust(stateFiles(at), [foreign.rootPem]),
      ["trust_bundle_invalid"],
      "other roots",
    ],
    ["no CA", (at) => rmSync(join(at, "trust.pem")), ["trust_bundle_invalid"], "trust.pem is missing"],
    [
      "agent.json is no JSON",
      (at) => writeFileSync(join(at, "agent.json"), "{"),
      ["identity_key_missing"],
      "agent.json",
    ],
    [
      "agent.json is gone",
      (at) => rmSync(join(at, "agent.json")),
      ["identity_key_missing"],
      "agent.json is not there",
    ],
    ["the journal is a directory", (at) => mkdirSync(join(at, "journal.a")), [], "none yet"],
    ["the lock is a file", (at) => writeFileSync(join(at, "agent.lock"), ""), [], "not running"],
  ])("AGENT-05 %s", async ([, breakIt, expected, words]) => {
    const directory = await enrolled();
    breakIt(directory);
    const { reasons, text } = look(directory);
    expect(reasons).toEqual(expected);
    expect(check(directory)).toEqual(expected);
    expect(text).toContain(words);
    expect(text).not.toContain("PRIVATE KEY");
  });

  it("AGENT-05 a journal that cannot be read", async () => {
    const directory = await enrolled();
    for (const name of ["journal.a", "journal.b"]) writeFileSync(join(directory, name), Buffer.alloc(70_000, 1));
    expect(look(directory).text).toContain("damaged beyond reading");
  });

  it("AGENT-05 a directory in place of the history", async () => {
    const directory = await enrolled();
    mkdirSync(join(directory, "diagnostics.log"));
    const { text, reasons } = look(directory);
    expect(reasons).toEqual(["diagnostics_unwritable"]);
    expect(text).not.toContain("Nothing is wrong");
    expect(text).toContain("The history cannot be read: EISDIR");
  });

  it("AGENT-05 how full the root file system is, as df says", async () => {
    const directory = await enrolled();
    const df = execFileSync("df", ["--output=pcent", "/"], { encoding: "utf8" });
    const used = Number(/(\d+)%/.exec(df)?.[1]);
    const options = { stateDir: directory, clockSkewSeconds: undefined, now: Date.now() };
    const at = (diskPressurePercent: number) =>
      selfCheck({ ...options, diskPressurePercent }).find(
        ({ reason }) => reason === "node_observability_disk_pressure",
      )?.detail;
    // It rounds up; and the disk is in use meanwhile.
    const measured = Number(/^(\d+) %/.exec(at(0) ?? "")?.[1]);
    expect(Math.abs(measured - used)).toBeLessThanOrEqual(2);
    expect(at(Math.min(100, used + 3))).toBeUndefined();
    const { findings } = lookAt(directory, { now: Date.now(), diskPressurePercent: 0 });
    expect(findings.map(({ reason }) => reason)).toContain("node_observability_disk_pressure");
  });

  it("AGENT-05 files of another node", async () => {
    const directory = await enrolled({ nodeId: "01a1e13c-bc3d-71c5-9b58-000000000000" });
    expect(look(directory).picture.findings[0]?.detail).toContain(`enrolled as ${NODE}`);
  });

  it.skipIf(lacks("root"))("AGENT-05 a read-only and a full state directory", async () => {
    const readOnly = smallFileSystem(4 * 1024 * 1024);
    await enrolled({ directory: readOnly.directory });
    readOnly.remount("ro");
    expect(look(readOnly.directory).reasons).toEqual(["state_dir_read_only"]);
    const full = await enrolled({ directory: smallFileSystem(512 * 1024).directory });
    expect(look(full).reasons).toEqual(["disk_full"]);
    expect(check(full)).toEqual(["disk_full"]);
  });

  it.skipIf(lacks("root") || lacks("openCheckout"))("AGENT-05 a user who may not look", async () => {
    const directory = await enrolled();
    chownSync(directory, 0, 0);
    chmodSync(directory, 0o700);
    const module = new URL("../src/diagnostics/explain.ts", import.meta.url).href;
    const program = `
      const { explain, lookAt } = await import(${JSON.stringify(module)});
      const picture = lookAt(${JSON.stringify(directory)}, { now: 0, diskPressurePercent: 90 });
      process.stdout.write(explain(picture, 0).join("\\n"));`;
    const child = spawn(process.execPath, ["-e", program], {
      uid: 65534,
      gid: 65534,
      stdio: ["ignore", "pipe", "inherit"],
    });
    atEnd(() => child.kill("SIGKILL"));
    const chunks: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
    await once(child, "close");
    expect(Buffer.concat(chunks).toString()).toContain("sudo holdfast agent diagnose");
  });
});
