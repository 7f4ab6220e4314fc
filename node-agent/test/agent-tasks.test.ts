// What a whole agent does with the tasks it is offered, against the API's faulty twin.

import { describe, expect, it } from "vitest";
import { startTestAgent } from "../../testkit/agent/agent.ts";
import { readRing, ringPath } from "../src/diagnostics/ring-file.ts";
import { type FakeApi, newSigningKey, startFakeApi } from "./support/fake-api.ts";
import { gate, loaderOf, testType } from "./support/test-types.ts";

const offer = (api: FakeApi, more: Parameters<FakeApi["sign"]>[0] = { task_type: "test.one" }) =>
  api.enqueue(api.sign(more));
const untilStopped = ({ signal }: { signal: AbortSignal }) =>
  new Promise<never>((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));

describe("tasks of an agent", () => {
  it("TASK-09 run, and their results are delivered", async () => {
    const api = await startFakeApi();
    const agent = await startTestAgent(api);
    const task = offer(api, { task_type: "node.noop", params: { echo: "hello" } });
    await expect
      .poll(() => api.resultOf(task.task_id))
      .toMatchObject({
        generation: 1,
        outcome: { status: "succeeded", result: { echo: "hello" } },
      });
    expect(agent.logged()).not.toContain('"level":"error"');
  });

  it("TASK-01 of a type that is not registered are refused, recorded and reported; there is no shell", async () => {
    const api = await startFakeApi();
    await startTestAgent(api);
    const types = ["shell.run", "agent.execute", "../executor", "node.noop/../../cli", "__proto__"];
    const tasks = types.map((task_type) => offer(api, { task_type }));
    await expect.poll(() => api.results).toHaveLength(types.length);
    for (const { task_id } of tasks) {
      expect(api.resultOf(task_id)).toMatchObject({
        outcome: { status: "refused", failure: { code: "task_type_unknown" } },
      });
    }
    await expect
      .poll(() => api.diagnostics.filter((one) => one.reason === "task_refused").length)
      .toBeGreaterThan(0);
  });

  it("TASK-03 that were changed, are over, or are another node's are refused and never run", async () => {
    const api = await startFakeApi();
    let runs = 0;
    const type = testType(async () => ({ said: String(runs++) }));
    await startTestAgent(api, { loadType: loaderOf({ "test.one": type }) });
    const other = "01a1e13c-bc3d-71c5-9b58-aada3c2346d5";
    const cases = {
      task_signature_invalid: { ...api.sign({ task_type: "test.one" }), params: { changed: true } },
      task_expired: api.sign({ task_type: "test.one", expires_at: new Date(Date.now() - 1).toISOString() }),
      task_wrong_node: api.sign({ task_type: "test.one", node_id: other }),
    };
    for (const task of Object.values(cases)) api.enqueue(task);
    await expect.poll(() => api.results).toHaveLength(3);
    for (const [code, { task_id }] of Object.entries(cases)) {
      expect(api.resultOf(task_id)?.outcome).toMatchObject({ status: "refused", failure: { code } });
    }
    expect(runs).toBe(0);
  });

  it("TASK-03 signed with a new key run after the agent has asked for it once", async () => {
    const api = await startFakeApi();
    await startTestAgent(api, { loadType: loaderOf({ "test.one": testType(async () => ({ said: "new" })) }) });
    await expect.poll(() => api.held()).toBe(1);
    const rotated = newSigningKey();
    api.verifiers = { keys: [...api.verifiers.keys, rotated.jwk] };
    const before = api.heartbeats.length;
    const task = api.enqueue(api.sign({ task_type: "test.one" }, rotated));
    await expect.poll(() => api.resultOf(task.task_id)).toMatchObject({ outcome: { status: "succeeded" } });
    // One more may be due by itself.
    const after = api.heartbeats.length;
    expect(after - before).toBeOneOf([1, 2]);
    const stranger = api.enqueue(api.sign({ task_type: "test.one" }, newSigningKey()));
    await expect
      .poll(() => api.resultOf(stranger.task_id))
      .toMatchObject({ outcome: { status: "refused", failure: { code: "task_key_unknown" } } });
    expect(api.heartbeats.length - after).toBeOneOf([1, 2]);
  });

  it("ID-14 are refused while the clock is not to be trusted, with the advice to sync it", async () => {
    const api = await startFakeApi();
    api.serverTime = () => Date.now() + 600_000;
    await startTestAgent(api);
    await expect.poll(() => api.held()).toBe(1);
    const task = offer(api, { task_type: "node.noop" });
    await expect
      .poll(() => api.resultOf(task.task_id))
      .toMatchObject({
        outcome: {
          failure: { code: "clock_skew", next_step: expect.stringContaining("Synchronize the time first") },
        },
      });
  });

  it("TASK-05 run once, however often they are offered and however often an answer is lost", async () => {
    const api = await startFakeApi();
    let runs = 0;
    const door = gate();
    const type = testType(
      async () => {
        runs += 1;
        await door.passed;
        return { said: "once" };
      },
      { idempotent: false },
    );
    await startTestAgent(api, { loadType: loaderOf({ "test.one": type }) });
    let lost = 0;
    api.fault = (path) => (path === "/tasks/wait" && lost++ < 2 ? { do: "lose_answer" } : undefined);
    const task = offer(api);
    await expect.poll(() => runs).toBe(1);
    // A newer delivery of the same task while it runs: the result is for that one.
    api.enqueue({ ...task, generation: 3 });
    let unanswered = 0;
    api.fault = (path) => (path === "/results" && unanswered++ < 2 ? { do: "lose_answer" } : undefined);
    door.open();
    await expect.poll(() => api.requests.filter((path) => path === "/results").length).toBe(3);
    expect(api.results).toHaveLength(1);
    expect(api.results[0]?.outcome).toMatchObject({ status: "succeeded" });
    expect(runs).toBe(1);
  });

  it("TASK-05 offered again after their result was taken are refused as replayed", async () => {
    const api = await startFakeApi();
    let runs = 0;
    const type = testType(async () => ({ said: String(++runs) }), { idempotent: false });
    await startTestAgent(api, { loadType: loaderOf({ "test.one": type }) });
    const task = offer(api);
    await expect.poll(() => api.results).toHaveLength(1);
    api.results.length = 0;
    api.enqueue({ ...task, generation: 2 });
    await expect
      .poll(() => api.results)
      .toMatchObject([
        {
          task_id: task.task_id,
          generation: 2,
          outcome: { status: "refused", failure: { code: "task_replayed" } },
        },
      ]);
    expect(runs).toBe(1);
  });

  it("TASK-07 run as many at a time as their type says; the others wait within the agent", async () => {
    const api = await startFakeApi();
    const door = gate();
    let [running, most] = [0, 0];
    const type = testType(
      async () => {
        running += 1;
        most = Math.max(most, running);
        await door.passed;
        running -= 1;
        return { said: "done" };
      },
      { concurrency: 2 },
    );
    await startTestAgent(api, { loadType: loaderOf({ "test.one": type }) });
    for (let index = 0; index < 7; index += 1) offer(api);
    await expect.poll(() => running).toBe(2);
    door.open();
    await expect.poll(() => api.results).toHaveLength(7);
    expect(most).toBe(2);
  });

  it("TASK-09 tell their progress and stop when they are cancelled, running or waiting", async () => {
    const api = await startFakeApi();
    const type = testType(
      async (task) => {
        task.progress("working", { percent: 10 });
        return untilStopped(task);
      },
      { concurrency: 1 },
    );
    await startTestAgent(api, { loadType: loaderOf({ "test.one": type }) });
    const [running, waiting] = [offer(api), offer(api)];
    await expect
      .poll(() => api.progress)
      .toMatchObject([{ task_id: running.task_id, generation: 1, phase: "working", data: { percent: 10 } }]);
    await expect.poll(() => api.held()).toBe(1);
    for (const { task_id } of [waiting, running]) api.cancel(task_id);
    await expect.poll(() => api.results).toHaveLength(2);
    for (const { task_id } of [waiting, running]) {
      expect(api.resultOf(task_id)?.outcome).toMatchObject({ status: "cancelled" });
    }
    expect(Object.keys(api.resultOf(running.task_id)?.timings ?? {})).toEqual(["working"]);
  });

  it("TASK-10 CHAOS-02 keep their outcome while results cannot be delivered, and its correlation id", async () => {
    const api = await startFakeApi();
    const agent = await startTestAgent(api, { env: { HOLDFAST_AGENT_HEARTBEAT_SECONDS: "2" } });
    api.fault = (path) =>
      path === "/results" ? { do: "answer", status: 503, body: "<h1>Bad gateway</h1>" } : undefined;
    const task = offer(api, { task_type: "node.noop", params: { echo: "kept" } });
    await expect.poll(() => api.requests.filter((path) => path === "/results").length).toBeGreaterThan(1);
    expect(JSON.parse((await agent.get("/healthz")).text)).toMatchObject({ ok: true, connected: true });
    await expect
      .poll(() => api.heartbeats.at(-1)?.findings)
      .toMatchObject([{ reason: "task_result_failed", detail: expect.stringContaining("Bad gateway") }]);
    const beats = api.heartbeats.length;
    await expect.poll(() => api.heartbeats.length).toBeGreaterThan(beats);
    expect(agent.logged()).not.toContain("no longer found");
    api.fault = () => undefined;
    await expect
      .poll(() => api.resultOf(task.task_id))
      .toMatchObject({ outcome: { status: "succeeded", result: { echo: "kept" } } });
    await expect.poll(agent.logged).toContain("no longer found: task_result_failed");
    await expect
      .poll(() => api.diagnostics)
      .toContainEqual(
        expect.objectContaining({ reason: "task_result_failed", correlation_id: task.correlation_id }),
      );
  });

  it("AGENT-01 of a form that the server refuses are recorded before they go again, as a failure", async () => {
    const api = await startFakeApi();
    const agent = await startTestAgent(api);
    const body = JSON.stringify({ code: "invalid_request", message: "Not so.", next_step: "Differently." });
    let refusals = 0;
    api.fault = (path) =>
      path === "/results" && refusals++ === 0 ? { do: "answer", status: 400, body } : undefined;
    const task = offer(api, { task_type: "node.noop" });
    await expect
      .poll(() => api.resultOf(task.task_id))
      .toMatchObject({ outcome: { status: "failed", failure: { code: "result_invalid" } } });
    const detail = expect.stringContaining(`refused the form of ${task.task_id}`);
    const { correlation_id } = task;
    const kept = readRing(ringPath(agent.stateDir));
    expect(kept).toContainEqual(expect.objectContaining({ reason: "task_result_failed", detail, correlation_id }));
  });

  it("TASK-05 that ended during an outage are delivered when the server is back, also after a restart", async () => {
    const api = await startFakeApi();
    const [begun, door] = [gate(), gate()];
    const type = testType(async () => {
      begun.open();
      await door.passed;
      return { said: "later" };
    });
    const first = await startTestAgent(api, { loadType: loaderOf({ "test.one": type }) });
    const task = offer(api);
    await begun.passed;
    await api.stop();
    door.open();
    await expect.poll(async () => (await first.get("/metrics")).text).toContain("holdfast_agent_results_unsent 1");
    await first.stop();
    await api.start();
    await startTestAgent(api, { stateDir: first.stateDir });
    await expect
      .poll(() => api.resultOf(task.task_id))
      .toMatchObject({ outcome: { status: "succeeded", result: { said: "later" } } });
  });

  it("TASK-05 that the agent's end cuts short become interrupted, or are offered again when that does no harm", async () => {
    const api = await startFakeApi();
    const started: string[] = [];
    const type = (idempotent: boolean) =>
      testType(
        async (task) => {
          started.push(`${idempotent}`);
          return untilStopped(task);
        },
        { idempotent },
      );
    const loadType = loaderOf({ "test.twice": type(true), "test.once": type(false) });
    const agent = await startTestAgent(api, { loadType });
    const [once, twice] = [offer(api, { task_type: "test.once" }), offer(api, { task_type: "test.twice" })];
    await expect.poll(() => started).toHaveLength(2);
    await agent.stop();
    const quick = testType(async () => ({ said: "second time" }));
    await startTestAgent(api, { stateDir: agent.stateDir, loadType: async () => quick });
    await expect.poll(() => api.results).toHaveLength(2);
    expect(api.resultOf(once.task_id)?.outcome).toMatchObject({
      status: "interrupted",
      failure: { code: "task_interrupted" },
    });
    expect(api.resultOf(twice.task_id)?.outcome).toMatchObject({ status: "succeeded" });
  });
});
