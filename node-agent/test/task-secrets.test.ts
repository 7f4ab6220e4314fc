// Secrets that come beside the params of a task: they reach its run, and no file, log, report or page of the agent.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { startTestAgent } from "../../testkit/agent/agent.ts";
import { startFakeApi } from "./support/fake-api.ts";
import { gate, loaderOf, testType } from "./support/test-types.ts";

const KEY = "pl4nted-key-of-the-task/+ü";
const forms = [
  KEY,
  Buffer.from(KEY).toString("base64"),
  Buffer.from(KEY).toString("hex"),
  encodeURIComponent(KEY),
  JSON.stringify(KEY).slice(1, -1),
];
const said = forms.join(" ");
const declared = { secrets: ["key"], idempotent: false };

describe("secrets of a task", () => {
  it("TASK-05 reach its run, and nothing that the agent writes, reports or shows", async () => {
    const api = await startFakeApi();
    const door = gate();
    const seen: Record<string, string>[] = [];
    const types = {
      "test.returns": testType(async ({ secrets, progress }) => {
        seen.push({ ...secrets });
        progress(`with ${said}`);
        await door.passed;
        return { said };
      }, declared),
      "test.throws": testType(async ({ fail }) => {
        throw fail("disk_on_fire", `${"x".repeat(990)}${KEY}`);
      }, declared),
      "test.breaks": testType(async () => {
        throw new Error(`cannot use ${said}`);
      }, declared),
    };
    const agent = await startTestAgent(api, { loadType: loaderOf(types) });
    const tasks = Object.keys(types).map((task_type) =>
      api.enqueue({ ...api.sign({ task_type }), secrets: { key: KEY, other: "not declared" } }),
    );
    await expect.poll(() => api.progress.length).toBeGreaterThan(0);
    const files = () =>
      readdirSync(agent.stateDir, { withFileTypes: true, recursive: true })
        .filter((file) => file.isFile())
        .map((file) => readFileSync(join(file.parentPath, file.name), "latin1"));
    const whileItRuns = files();
    door.open();
    await expect.poll(() => api.results).toHaveLength(tasks.length);
    expect(seen).toEqual([{ key: KEY }]);
    expect(api.resultOf(tasks[0]?.task_id ?? "")?.outcome).toMatchObject({
      status: "succeeded",
      result: { said: Array(forms.length).fill("[secret]").join(" ") },
    });
    const sinks = [
      ...whileItRuns,
      ...files(),
      ...[agent.logged(), JSON.stringify([api.results, api.progress, api.heartbeats, api.diagnostics])],
      ...(await Promise.all(
        ["/metrics", "/healthz", "/v1/capacity"].map(async (path) => (await agent.get(path)).text),
      )),
    ];
    expect(whileItRuns.length).toBeGreaterThan(2);
    // The beginning of the key, too: a message is cut to length after it was removed.
    const latin = (text: string) => Buffer.from(text).toString("latin1");
    for (const trace of [...forms, ...forms.map(latin), KEY.slice(0, 9)]) {
      expect(sinks.filter((sink) => sink.includes(trace))).toEqual([]);
    }
  });

  it("TASK-05 that are missing refuse the task: nothing runs without them", async () => {
    const api = await startFakeApi();
    let runs = 0;
    const type = testType(async () => ({ said: String(runs++) }), declared);
    await startTestAgent(api, { loadType: loaderOf({ "test.one": type }) });
    const { task_id } = api.enqueue(api.sign({ task_type: "test.one" }));
    await expect
      .poll(() => api.resultOf(task_id)?.outcome)
      .toMatchObject({ status: "refused", failure: { code: "task_secrets_missing" } });
    expect(runs).toBe(0);
  });
});
