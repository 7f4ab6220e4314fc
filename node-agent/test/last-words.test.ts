// The script that systemd runs when the agent's service has ended, run for real: it writes into a history that the agent
// made, and reports to a real api with the node's own key. In place of systemd-run it starts its sender itself, and a
// stand-in for `df` says how full the disk is.

import { execFile } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join as at } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { explainNode } from "@holdfast/contracts/endpoints/drift";
import { createEnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import { listNodeDiagnostics } from "@holdfast/contracts/endpoints/nodes";
import { DiagnosticRecord } from "@holdfast/contracts/node/protocol";
import { beforeAll, describe, expect, it } from "vitest";
import { someFacts } from "../../testkit/agent/facts.ts";
import { scratchDirectory } from "../../testkit/agent/scratch.ts";
import { createOrg, startTestApi, type TestApi } from "../../testkit/api/api.ts";
import { openDiagnostics } from "../src/diagnostics/ring.ts";
import { ringPath } from "../src/diagnostics/ring-file.ts";
import { readAgentFile, writeAgentFile } from "../src/identity/agent-file.ts";
import { join } from "../src/identity/join.ts";
import { stateFiles } from "../src/identity/state-directory.ts";
import { createLog } from "../src/log.ts";

const script = fileURLToPath(new URL("../../deploy/last-words.sh", import.meta.url));
const run = promisify(execFile);
const log = createLog({ level: "error", write: () => undefined });
const instanceId = "3b241101-e2bb-4255-8caf-4136c566a962";

let api: TestApi;
let client: ReturnType<TestApi["operator"]>;

beforeAll(async () => {
  api = await startTestApi();
  client = api.operator((await createOrg(api, "last-words")).id);
});

/** A node whose agent was connected once, and the files that its service executes. */
async function setUp() {
  const stateDir = scratchDirectory();
  const { token } = await client(createEnrollmentToken, { body: {} });
  const { nodeId } = await join({ token, apiUrl: api.nodeUrl, stateDir, facts: someFacts });
  const place = scratchDirectory();
  const program = at(place, "node");
  const code = at(place, "agent.mjs");
  writeFileSync(program, readFileSync("/bin/true"));
  writeFileSync(code, "export {};\n");
  const tools = at(place, "bin");
  mkdirSync(tools);
  const tool = (name: string, text: string) => {
    writeFileSync(at(tools, name), `#!/bin/sh\n${text}\n`);
    chmodSync(at(tools, name), 0o755);
  };
  tool("systemd-run", `echo "$*" >>${place}/asked; while [ "$1" != /bin/sh ]; do shift; done; exec "$@"`);
  const disk = (percent: number) => tool("df", `echo head; echo fs 1 1 1 ${percent}% /`);
  disk(40);
  const recorded = (reason: "process_alive" | "disk_full", detail: string) => {
    const diagnostics = openDiagnostics(stateDir, { log, instanceId });
    diagnostics.record(reason, detail);
    diagnostics.close();
  };
  recorded("process_alive", "connected");
  const env = {
    ...{ PATH: `${tools}:/usr/bin:/bin`, HOLDFAST_AGENT_STATE_DIR: stateDir },
    RUNTIME_DIRECTORY: at(place, "run"),
  };
  const history = () => {
    const diagnostics = openDiagnostics(stateDir, { log, instanceId });
    const records = diagnostics.recent(600).map((one) => DiagnosticRecord.parse(one));
    diagnostics.close();
    return records;
  };
  return {
    ...{ nodeId, stateDir, place, program, code, tool, disk, recorded, history },
    /** Not synchronously: the api is in this process. */
    end: async (ending: Record<string, string>) =>
      (await run("/bin/sh", [script, program, code], { env: { ...env, ...ending } })).stdout,
    /** The calls of systemd-run. */
    asked: () => (existsSync(at(place, "asked")) ? readFileSync(at(place, "asked"), "utf8") : ""),
    messages: () =>
      existsSync(at(place, "asked")) ? readFileSync(at(place, "asked"), "utf8").trim().split("\n").length : 0,
    delivered: async () => (await client(listNodeDiagnostics, { params: { node_id: nodeId } })).items,
    explained: () => client(explainNode, { params: { node_id: nodeId } }),
  };
}

const crashed = { SERVICE_RESULT: "signal", EXIT_CODE: "killed", EXIT_STATUS: "SEGV" };
const notExecuted = { SERVICE_RESULT: "exit-code", EXIT_CODE: "exited", EXIT_STATUS: "203" };

describe("last words", () => {
  it("DRIFT-13 are in the agent's history and at the server, which knows that the service has failed", async () => {
    const node = await setUp();
    expect(await node.end(crashed)).toContain("signal (killed, status SEGV)");
    const [last, before] = node.history();
    expect(last).toMatchObject({
      ...{ reason: "agent_down", detail: "systemd reports signal (killed, status SEGV)" },
      ...{ seq: (before?.seq ?? 0) + 1, host: { service: "failed" }, correlation_id: expect.any(String) },
    });
    expect(await node.delivered()).toEqual([last]);
    await expect
      .poll(async () => (await node.explained()).causes)
      .toMatchObject([{ reason: "agent_down", signal: "node_agent_process_down", confidence: "high" }]);
    const { evidence, causes } = await node.explained();
    expect(evidence).toContainEqual(
      expect.objectContaining({ kind: "host_service", value: "failed", observer: "host" }),
    );
    expect(causes[0]?.message).toContain("killed, status SEGV");
  });

  it("AGENT-09 are not spoken when the service was stopped, restarted or upgraded", async () => {
    const node = await setUp();
    const before = node.history();
    expect(await node.end({ SERVICE_RESULT: "success", EXIT_CODE: "exited", EXIT_STATUS: "0" })).toBe("");
    expect(await node.end({})).toBe("");
    expect(node.history()).toEqual(before);
    expect(node.asked()).toBe("");
  });

  it.for([
    ["a missing program", "missing", ({ program }: Files) => rmSync(program)],
    ["a program without content", "missing", ({ program }: Files) => writeFileSync(program, "")],
    ["a program for another processor", "format_error", ({ program }: Files) => alienate(program)],
    ["a damaged program", "format_error", ({ program }: Files) => writeFileSync(program, "touch /tmp/x\n")],
    ["missing code", "missing", ({ code }: Files) => rmSync(code)],
  ] as const)("DRIFT-13 name %s", async ([, exec, breakIt]) => {
    const node = await setUp();
    breakIt(node);
    await node.end(
      exec === "missing" && existsSync(node.program) ? { ...notExecuted, EXIT_STATUS: "1" } : notExecuted,
    );
    expect(node.history()[0]).toMatchObject({ host: { service: "failed", exec } });
    await expect
      .poll(async () => (await node.explained()).causes)
      .toMatchObject([{ reason: "node_agent_binary_invalid", symptoms: [{ reason: "agent_down" }] }]);
    expect((await node.explained()).evidence).toContainEqual(
      expect.objectContaining({ kind: "host_exec", value: exec, observer: "host" }),
    );
  });

  it("DRIFT-13 do not blame a program of this processor that could not be executed for another reason", async () => {
    const node = await setUp();
    await node.end(notExecuted);
    expect(node.history()[0]).toMatchObject({
      ...{ host: { service: "failed" }, detail: expect.stringContaining("could not be executed") },
    });
  });

  it("DRIFT-13 AGENT-01 report a full disk, also without a file to record it in", async () => {
    const node = await setUp();
    node.disk(100);
    rmSync(ringPath(node.stateDir));
    await node.end(crashed);
    expect(existsSync(ringPath(node.stateDir))).toBe(false);
    expect(await node.delivered()).toMatchObject([
      { reason: "disk_full", detail: expect.stringContaining("100 % of the file system of / are used") },
    ]);
    await expect
      .poll(async () => (await node.explained()).causes)
      .toMatchObject([{ reason: "disk_full", symptoms: [{ reason: "agent_down" }] }]);
    await node.end(crashed);
    expect(node.messages()).toBe(1);
  });

  it("AGENT-01 are counted while the agent fails in the same way, and spoken again once it was connected", async () => {
    const node = await setUp();
    await node.end(crashed);
    node.recorded("disk_full", "of the agent itself");
    await node.end(crashed);
    await node.end(crashed);
    const [own, counted] = node.history();
    expect(own?.reason).toBe("disk_full");
    expect(counted?.detail).toMatch(/^systemd reports signal \(killed, status SEGV\) \(3 times, last at /);
    expect(node.messages()).toBe(1);
    node.recorded("process_alive", "connected");
    await node.end(crashed);
    expect(node.messages()).toBe(2);
    expect(node.history()[0]).toMatchObject({ reason: "agent_down", host: { service: "failed" } });
    expect(node.history()[0]?.detail).not.toContain("times");
    expect(await node.delivered()).toHaveLength(2);
  });

  it("AGENT-01 are sent again with the next failure if they did not arrive", async () => {
    const node = await setUp();
    const files = stateFiles(node.stateDir);
    const agent = readAgentFile(files);
    if (!agent) throw new Error("no agent.json");
    const { profile } = agent;
    const elsewhere = { ...profile.endpoints, node_api: "https://127.0.0.1:9" };
    writeAgentFile(files, { ...agent, profile: { ...profile, endpoints: elsewhere } });
    await node.end(crashed);
    expect(await node.delivered()).toEqual([]);
    writeAgentFile(files, agent);
    await node.end(crashed);
    await node.end(crashed);
    expect(node.messages()).toBe(2);
    expect(await node.delivered()).toHaveLength(1);
    expect(await node.delivered()).toMatchObject([{ seq: node.history()[0]?.seq }]);
  });

  it("AGENT-01 are recorded where there is no curl", async () => {
    const node = await setUp();
    const few = at(node.place, "few");
    mkdirSync(few);
    const tools = ["awk", "cat", "cut", "date", "dd", "df", "find", "mkdir", "od", "printf", "sed", "tr", "wc"];
    for (const name of tools) symlinkSync(`/usr/bin/${name}`, at(few, name));
    expect(await node.end({ ...crashed, PATH: few })).toContain("The agent ended");
    expect(node.history()[0]).toMatchObject({ reason: expect.any(String), host: { service: "failed" } });
    expect(node.messages()).toBe(0);
  });

  it("AGENT-09 use the address that the profile has for a name, and show no secret", async () => {
    const node = await setUp();
    const files = stateFiles(node.stateDir);
    const agent = readAgentFile(files);
    if (!agent) throw new Error("no agent.json");
    const url = new URL(api.nodeUrl);
    url.hostname = "localhost";
    // No name server knows which address is meant: only the profile does.
    const profile = { ...agent.profile, resolve: { other: ["10.0.0.1"], localhost: ["127.0.0.1"] } };
    writeAgentFile(files, { ...agent, profile, node_api: url.origin });
    node.tool(
      "curl",
      `for word; do [ "$word" != "::127.0.0.1:" ] || touch ${node.place}/connected-to; done; exec /usr/bin/curl "$@"`,
    );
    await node.end({ ...crashed, HOLDFAST_BOOTSTRAP_TOKEN: "hfb_secret" });
    expect(existsSync(at(node.place, "connected-to"))).toBe(true);
    expect(await node.delivered()).toHaveLength(1);
    expect(node.asked()).not.toContain("hfb_secret");
    expect(node.asked()).not.toContain("PRIVATE KEY");
  });
});

type Files = { program: string; code: string };

/** The same program, but for a processor that nobody has. */
function alienate(program: string): void {
  const bytes = readFileSync(program);
  bytes.writeUInt16LE(0xfefe, 18);
  writeFileSync(program, bytes);
}
