// A real agent process, killed without warning while a task runs, and started again.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { joinedDirectory } from "../../testkit/agent/agent.ts";
import { scratchDirectory } from "../../testkit/agent/scratch.ts";
import { atEnd } from "../../testkit/lifetime/at-end.ts";
import { readJournal } from "../src/journal/summary.ts";
import { type FakeApi, startFakeApi } from "./support/fake-api.ts";

const program = fileURLToPath(new URL("support/agent-process.ts", import.meta.url));

async function machine() {
  const api = await startFakeApi();
  const stateDir = await joinedDirectory(api);
  const file = join(scratchDirectory(), "runs");
  writeFileSync(file, "");
  const runs = () => readFileSync(file, "utf8").trim().split("\n").filter(Boolean);
  const start = () => {
    const child = spawn(process.execPath, [program, stateDir, file], { stdio: "ignore" });
    atEnd(() => child.kill("SIGKILL"));
    return child;
  };
  return { api, stateDir, runs, start };
}

async function kill(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  const ended = once(child, "exit");
  child.kill(signal);
  await ended;
}

const offer = (api: FakeApi, task_type: string, params: Record<string, unknown> = {}) =>
  api.enqueue(api.sign({ task_type, params }));

describe("an agent that is killed", () => {
  it("TASK-05 never runs a started task again that must not run twice: it reports it as interrupted", async () => {
    const { api, runs, start } = await machine();
    const first = start();
    const task = offer(api, "test.once");
    await expect.poll(runs).toEqual(["once"]);
    await kill(first, "SIGKILL");
    start();
    await expect
      .poll(() => api.resultOf(task.task_id))
      .toMatchObject({
        generation: 1,
        outcome: { status: "interrupted", failure: { code: "task_interrupted" } },
      });
    expect(runs()).toEqual(["once"]);
  });

  it("TASK-05 runs a task again that may run twice, when it is offered again", async () => {
    const { api, runs, start } = await machine();
    const first = start();
    const task = offer(api, "test.again");
    await expect.poll(runs).toEqual(["again"]);
    await kill(first, "SIGKILL");
    start();
    await expect.poll(runs).toEqual(["again", "again"]);
    api.cancel(task.task_id);
    await expect.poll(() => api.resultOf(task.task_id)).toMatchObject({ outcome: { status: "cancelled" } });
  });

  it("TASK-05 delivers a result whose verdict it never saw, and runs nothing again for it", async () => {
    const { api, runs, start } = await machine();
    api.fault = (path) => (path === "/results" ? { do: "reset" } : undefined);
    const first = start();
    const task = offer(api, "test.once", { quick: true });
    await expect.poll(() => api.requests).toContain("/results");
    await kill(first, "SIGKILL");
    expect(api.results).toEqual([]);
    api.fault = () => undefined;
    start();
    await expect.poll(() => api.resultOf(task.task_id)).toMatchObject({ outcome: { status: "succeeded" } });
    expect(runs()).toEqual(["once"]);
  });

  it("TASK-05 told to stop, ends by itself and leaves the outcome of what ran", async () => {
    const { api, stateDir, runs, start } = await machine();
    const first = start();
    const task = offer(api, "test.once");
    await expect.poll(runs).toEqual(["once"]);
    await kill(first, "SIGTERM");
    expect(first.exitCode).toBe(0);
    // Delivered, or kept for the next start when the server did not take it within a second.
    const left = api.resultOf(task.task_id) ?? readJournal(stateDir)?.unsent[0];
    expect(left).toMatchObject({ task_id: task.task_id, outcome: { status: "interrupted" } });
  });

  it("TASK-05 refuses to run twice on one state directory", async () => {
    const { api, stateDir, start } = await machine();
    start();
    await expect.poll(() => api.held()).toBe(1);
    const second = spawn(process.execPath, [program, stateDir, "/dev/null"], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    let output = "";
    second.stderr.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
    const [code] = await once(second, "close");
    expect(code).toBe(2);
    expect(output).toContain(stateDir);
  });
});
