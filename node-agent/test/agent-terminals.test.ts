// Terminals of a whole agent: opened by a signed task, reported in its metrics and diagnostics, and found
// again by the next agent process. As root with a user made for it, otherwise with its own account.

import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { userInfo } from "node:os";
import { fileURLToPath } from "node:url";
import { readFileIfPresent } from "@holdfast/kit/files";
import { describe, expect, it } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import { joinedDirectory, startTestAgent } from "../../testkit/agent/agent.ts";
import { atEnd } from "../../testkit/lifetime/at-end.ts";
import { testUser } from "../../testkit/tasks/os-users.ts";
import { readRing, ringPath } from "../src/diagnostics/ring-file.ts";
import { loadTaskType } from "../src/executor/task-types.ts";
import { createMetrics } from "../src/metrics.ts";
import { findSockets } from "../src/terminals/directory.ts";
import { type FakeApi, startFakeApi } from "./support/fake-api.ts";
import { startFakeGateway } from "./support/fake-gateway.ts";
import { ask, isRunning } from "./support/terminals.ts";
import { gate, loaderOf, testType } from "./support/test-types.ts";

const holdfast = fileURLToPath(new URL("../../cli/bin/holdfast.mjs", import.meta.url));
const isRoot = process.getuid?.() === 0;

async function machine(certificates: Parameters<typeof startFakeApi>[0] = {}) {
  const api = await startFakeApi(certificates);
  const gateway = await startFakeGateway(api.authority);
  api.profile.endpoints["node_terminal"] = gateway.url;
  const stateDir = await joinedDirectory(api);
  atEnd(() => endShells(stateDir));
  const { username, allocation_id } = isRoot
    ? testUser()
    : { username: userInfo().username, allocation_id: randomUUID() };
  const outcomeOf = async (taskId: string) => {
    await expect.poll(() => api.resultOf(taskId)).toBeDefined();
    return api.resultOf(taskId)?.outcome;
  };
  const run = (task_type: string, params: Record<string, unknown>) =>
    outcomeOf(api.enqueue(api.sign({ task_type, params })).task_id);
  const makeUser = async () =>
    expect(await run("allocation.provision_user", { username, allocation_id, ssh_keys: [] })).toMatchObject({
      status: "succeeded",
    });
  const startOpening = (session_id: string = randomUUID()) => {
    const more = { correlation_id: `c-${session_id}`, within_seconds: 29, detached_seconds: 600 };
    const params = { session_id, allocation_id, username, cols: 80, rows: 24, ...more };
    const { task_id } = api.enqueue(api.sign({ task_type: "terminal.open", params }));
    return { session_id, outcome: () => outcomeOf(task_id) };
  };
  const open = async () => {
    const { session_id, outcome } = startOpening();
    return { session_id, outcome: await outcome() };
  };
  return { api, gateway, stateDir, makeUser, open, startOpening };
}

function endShells(stateDir: string): void {
  for (const one of findSockets(stateDir)) {
    if (one.kind === "shell" && isRunning(one.holder.pid)) process.kill(one.holder.pid, "SIGKILL");
  }
}

/** The shell's process id, once its holder has started it. */
/** A shell leads a session of its own; what its holder runs before that does not. */
function isLeader(pid: string): boolean {
  const stat = readFileIfPresent(`/proc/${pid}/stat`) ?? "";
  return stat.replace(/^.*\) /, "").split(" ")[3] === pid;
}

async function shellIn(stateDir: string): Promise<number> {
  const children = () => {
    const [shell] = findSockets(stateDir).filter((one) => one.kind === "shell");
    const { pid } = shell?.holder ?? {};
    return pid === undefined
      ? []
      : readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).filter(isLeader);
  };
  await expect.poll(() => children().length).toBeGreaterThan(0);
  return Number(children()[0]);
}

function startProcess(stateDir: string): ChildProcess {
  const env = { ...process.env, HOLDFAST_AGENT_STATE_DIR: stateDir, HOLDFAST_AGENT_PORT: "0" };
  const child = spawn(process.execPath, [holdfast, "agent", "run"], { stdio: "ignore", env });
  atEnd(() => child.kill("SIGKILL"));
  return child;
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  const ended = once(child, "exit");
  child.kill(signal);
  await ended;
}

function revoke(api: FakeApi): void {
  const body = JSON.stringify({ code: "identity_revoked", message: "It is revoked.", next_step: "Ask." });
  api.fault = () => ({ do: "answer", status: 401, body });
  api.dropConnections();
}

describe("an agent's metrics", () => {
  it("AGENT-04 are all moved by what they count: nothing is exported that nothing sets", async () => {
    // A certificate of one minute is due for renewal at once, and this server issues none.
    const { api, gateway, stateDir, makeUser, open } = await machine({ validityMs: 60_000 });
    const noCertificate = JSON.stringify({ code: "ca_unavailable", message: "No CA.", next_step: "Wait." });
    const revoked = JSON.stringify({ code: "identity_revoked", message: "It is revoked.", next_step: "Ask." });
    let failing = 0;
    api.fault = (path) => {
      if (path === "/renew") return { do: "answer", status: 503, body: noCertificate };
      return path === "/results" && failing-- > 0 ? { do: "reset" } : undefined;
    };
    const [begun, door] = [gate(), gate()];
    const types = loaderOf({
      "test.held": testType(async () => {
        begun.open();
        await door.passed;
        throw new Error("it does not work");
      }),
    });
    const loadType = async (name: string) => (await types(name)) ?? loadTaskType(name);
    const agent = await startTestAgent({ stateDir }, { loadType });
    const scrapes = [samples(createMetrics().text())];
    const scrape = async () => {
      scrapes.push(samples((await agent.get("/metrics")).text));
      return scrapes.at(-1) ?? new Map<string, number>();
    };
    await expect.poll(async () => (await scrape()).get("connection_up")).toBe(1);
    await makeUser();
    const held = api.enqueue(api.sign({ task_type: "test.held" }));
    api.enqueue(api.sign({ task_type: "test.unknown" }));
    await begun.passed;
    expect((await open()).outcome).toMatchObject({ status: "succeeded" });
    expect((await scrape()).get("tasks_running")).toBe(1);
    failing = 1;
    door.open();
    await expect.poll(async () => (await scrape()).get("results_failed_total")).toBe(1);
    await expect.poll(() => api.resultOf(held.task_id)).toMatchObject({ outcome: { status: "failed" } });
    gateway.refuse = () => ({ status: 401, body: JSON.stringify({ code: "certificate_missing" }) });
    expect((await open()).outcome).toMatchObject({ status: "failed" });
    api.fault = () => ({ do: "answer", status: 401, body: revoked });
    api.dropConnections();
    await expect.poll(async () => (await scrape()).get("identity_rejections_total")).toBeGreaterThan(0);
    expect((await scrape()).get("connection_up")).toBe(0);

    const names = new Set(scrapes.flatMap((one) => [...one.keys()]));
    expect(names.size).toBeGreaterThan(15);
    const values = (name: string) => new Set(scrapes.map((one) => one.get(name)));
    // This server has no streams and takes no recovery tokens: agent-stream.test.ts and recovery*.test.ts see these change.
    const recoveries = ["attempts", "successes", "failures", "suppressed"].map((what) => `recovery_${what}_total`);
    expect([...names].filter((name) => values(name).size < 2)).toEqual(["stream_up", ...recoveries]);
    const reported = Object.keys(api.heartbeats.at(-1)?.counters ?? {});
    expect(reported.filter((name) => !names.has(`${name}_total`))).toEqual([]);
  });
});

/** By name and label, without what all have in front. */
function samples(text: string): Map<string, number> {
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    lines.map((line) => [
      line.slice("holdfast_agent_".length, line.lastIndexOf(" ")),
      Number(line.split(" ").pop()),
    ]),
  );
}

describe("an agent's terminals", () => {
  it("TERM-03 are opened by a task, which succeeds once the gateway knows of the shell", async () => {
    const { gateway, stateDir, makeUser, open } = await machine();
    const agent = await startTestAgent({ stateDir });
    await makeUser();
    const { session_id, outcome } = await open();
    expect(outcome).toMatchObject({ status: "succeeded", result: { offset: 0 } });
    const stream = await gateway.stream(session_id);
    await stream.frame("hello");
    expect(stream.headers["x-correlation-id"]).toBe(`c-${session_id}`);
    await stream.attach();
    expect(await ask(stream, "echo $HOLDFAST_SESSION_ID")).toBe(session_id);
    expect((await agent.get("/metrics")).text).toContain("holdfast_agent_terminals_open 1\n");
    stream.type("exit\r");
    await stream.frame("exit");
    await expect
      .poll(async () => (await agent.get("/metrics")).text)
      .toContain("holdfast_agent_terminals_open 0\n");
  });

  it("AGENT-01 TERM-04 tell why they were not opened, or have to be dialled again", async () => {
    const { api, gateway, stateDir, makeUser, open } = await machine();
    const agent = await startTestAgent({ stateDir });
    await makeUser();
    gateway.refuse = () => ({
      status: 401,
      body: JSON.stringify({ code: "certificate_missing", message: "None." }),
    });
    const { session_id, outcome } = await open();
    expect(outcome).toMatchObject({
      status: "failed",
      failure: { code: "terminal_node_stream_mtls_failed", message: expect.stringContaining(gateway.url) },
    });
    const counted = 'holdfast_agent_terminal_failures_total{code="terminal_node_stream_mtls_failed"} 1\n';
    expect((await agent.get("/metrics")).text).toContain(counted);
    await expect
      .poll(() => api.diagnostics.find(({ reason }) => reason === "terminal_gateway_unreachable"))
      .toMatchObject({ correlation_id: `c-${session_id}` });
    gateway.refuse = () => undefined;
    const opened = await open();
    expect(opened.outcome).toMatchObject({ status: "succeeded" });
    await gateway.stop();
    const detail = expect.stringMatching(/^terminal_node_stream_timeout: /);
    const retried = { reason: "terminal_gateway_unreachable", detail, correlation_id: `c-${opened.session_id}` };
    await expect.poll(() => readRing(ringPath(stateDir))).toContainEqual(expect.objectContaining(retried));
    expect((await agent.get("/metrics")).text, "it is not lost yet").not.toContain("terminal_node_stream_timeout");
  });

  it.skipIf(lacks("root"))("TERM-06 are refused for a user that is not the allocation's", async () => {
    const { stateDir, open } = await machine();
    await startTestAgent({ stateDir });
    expect((await open()).outcome).toMatchObject({
      status: "failed",
      failure: { code: "terminal_pty_failed", message: expect.stringContaining("not made for this allocation") },
    });
    await expect.poll(() => findSockets(stateDir).filter(({ kind }) => kind === "shell")).toEqual([]);
  });

  it("TERM-11 outlive an agent that is killed, and one that is stopped: the same shell goes on", async () => {
    const { gateway, stateDir, makeUser, open } = await machine();
    const first = startProcess(stateDir);
    await makeUser();
    const { session_id } = await open();
    const stream = await gateway.stream(session_id);
    await stream.attach();
    const pid = await ask(stream, "kept=treasure; echo $$");
    await end(first, "SIGKILL");
    const second = startProcess(stateDir);
    const again = await gateway.stream(session_id, stream);
    await again.frame("hello");
    await again.attach();
    expect(await ask(again, "echo $$ $kept")).toBe(`${pid} treasure`);
    await end(second, "SIGTERM");
    expect(second.exitCode).toBe(0);
    startProcess(stateDir);
    const streams = () => gateway.streams.filter((one) => one.sessionId === session_id);
    await expect.poll(() => streams().length).toBeGreaterThanOrEqual(3);
    const newest = await gateway.stream(session_id, again);
    await newest.frame("hello");
    await newest.attach();
    expect(await ask(newest, "echo $$ $kept")).toBe(`${pid} treasure`);
    newest.send({ type: "close", reason: "asked" });
    await newest.frame("exit");
    await expect.poll(() => isRunning(Number(pid))).toBe(false);
  });

  describe("whose agent is killed before it could report that they are open", () => {
    /** The shell runs and the gateway has not accepted its stream; then the agent is killed. */
    async function killedWhileOpening() {
      const { api, gateway, stateDir, makeUser, startOpening } = await machine();
      const agent = startProcess(stateDir);
      await makeUser();
      gateway.refuse = () => "silence";
      const { session_id, outcome } = startOpening();
      const pid = await shellIn(stateDir);
      await end(agent, "SIGKILL");
      gateway.refuse = () => ({ status: 503, body: "" });
      return { api, gateway, stateDir, session_id, outcome, pid };
    }

    it("TASK-05 TERM-11 are open when the next one has connected the same shell", async () => {
      const { api, gateway, stateDir, session_id, outcome, pid } = await killedWhileOpening();
      startProcess(stateDir);
      // Nothing is reported while the shell is not connected.
      const heartbeats = api.heartbeats.length;
      await expect.poll(() => api.heartbeats.length).toBeGreaterThan(heartbeats);
      gateway.refuse = () => undefined;
      const stream = await gateway.stream(session_id);
      await stream.frame("hello");
      expect(await outcome()).toMatchObject({ status: "succeeded", result: { pid, offset: 0 } });
      await stream.attach();
      expect(await ask(stream, "echo $$")).toBe(String(pid));
    });

    it("TASK-05 TERM-11 are interrupted when the gateway no longer expects them, and leave no shell", async () => {
      const { gateway, stateDir, outcome, pid } = await killedWhileOpening();
      const body = JSON.stringify({ code: "terminal_session_unknown", message: "It has ended." });
      gateway.refuse = () => ({ status: 409, body });
      startProcess(stateDir);
      expect(await outcome()).toMatchObject({ status: "interrupted" });
      await expect.poll(() => isRunning(pid)).toBe(false);
    });

    it("TASK-05 TERM-11 are interrupted when their shell has ended meanwhile", async () => {
      const { gateway, stateDir, outcome } = await killedWhileOpening();
      endShells(stateDir);
      gateway.refuse = () => undefined;
      startProcess(stateDir);
      expect(await outcome()).toMatchObject({ status: "interrupted" });
    });
  });

  it("ID-09 end when the node is revoked", async () => {
    const { api, gateway, stateDir, makeUser, open } = await machine();
    await startTestAgent({ stateDir });
    await makeUser();
    const { session_id, outcome } = await open();
    expect(outcome).toMatchObject({ status: "succeeded" });
    const { pid } = (outcome as { result: { pid: number } }).result;
    await gateway.stream(session_id);
    revoke(api);
    await expect.poll(() => isRunning(pid)).toBe(false);
    await expect.poll(() => findSockets(stateDir).filter(({ kind }) => kind === "shell")).toEqual([]);
  });
});
