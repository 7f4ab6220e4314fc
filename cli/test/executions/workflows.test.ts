// The verification of remote execution, as the runbook of the source system describes it, at a whole installation: publish a workflow
// with a step on an agent, run it, and read its events; targeting by agent id, tag and group; and a worker that is killed at every
// event, while a file outside the product counts what ran.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { getRun, listRunEvents, type RunEventEntry, startRun } from "@holdfast/contracts/endpoints/runs";
import { applyWorkflow, publishWorkflow } from "@holdfast/contracts/endpoints/workflows";
import { beforeAll, describe, expect, it } from "vitest";
import { scratchDirectory } from "../../../testkit/agent/scratch.ts";
import { until } from "../../../testkit/processes/holdfast.ts";
import { type ExecutionSite, newHost, openExecutionSite } from "../support/executions.ts";

let site: ExecutionSite;
const agents: Record<string, string> = {};

beforeAll(async () => {
  site = await openExecutionSite({ WORKFLOW_CONTINUATION_POLL_MS: "500" });
  for (const [name, tags] of [
    ["east-1", "east,group:alpha"],
    ["west-1", "west,group:beta"],
  ] as const) {
    const token = await site.pairingToken();
    newHost(site.installation).connect([
      ...["--pairing-token", token, "--api-base", site.ready.api_url, "--name", name, "--tags", tags],
    ]);
    await until(async () => (await site.agents()).some((one) => one.name === name && one.status === "online"));
  }
  for (const { name, id } of await site.agents()) agents[name] = id;
});

let count = 0;

async function start(document: object): Promise<string> {
  count += 1;
  const body = { name: `flow-${count}`, source: JSON.stringify(document) };
  const applied = await site.call(applyWorkflow, { body });
  expect(applied.problems).toEqual([]);
  const params = { workflow_id: applied.id };
  await site.call(publishWorkflow, { params, body: {} });
  return (await site.call(startRun, { params, body: {} })).id;
}

const eventsOf = async (run_id: string) => (await site.call(listRunEvents, { params: { run_id } })).items;
const shown = (run_id: string) => site.call(getRun, { params: { run_id } });
const brief = (events: readonly RunEventEntry[]) =>
  events.map(({ type, node }) => (node === null ? type : `${type} ${node}`));

async function finished(run_id: string) {
  await until(async () => !["queued", "running"].includes((await shown(run_id)).status));
  return shown(run_id);
}

const echo = (execution: object) => ({
  version: "v2",
  trigger: { type: "trigger.manual" },
  nodes: [
    {
      id: "step",
      type: "connector.action",
      config: { connectorId: "echo", actionId: "echo", input: { a: 1 }, execution },
    },
  ],
});

describe("document 004, verifying remote execution", () => {
  it('FLOW-02 FLOW-03 a step with execution.mode "node" is dispatched, and its success follows', async () => {
    const run = await start(echo({ mode: "node" }));
    expect(await finished(run)).toMatchObject({ status: "succeeded", output: { step: { a: 1 } } });
    expect(brief(await eventsOf(run))).toEqual([
      ...["run_started", "node_started step", "node_dispatched step", "node_succeeded step", "run_succeeded"],
    ]);
  });

  it.each(["agent id", "tag", "group"])("FLOW-02 EXEC-03 targets by %s", async (how) => {
    const selector = { "agent id": { agentId: agents["west-1"] }, tag: { tag: "west" }, group: { group: "beta" } }[
      how
    ];
    const run = await start(echo({ mode: "node", selector }));
    expect(await finished(run)).toMatchObject({ status: "succeeded" });
    const { listExecutions } = await import("@holdfast/contracts/endpoints/executions");
    const { items } = await site.call(listExecutions, { query: { request_id: `${run}:step:1` } });
    expect(items.map(({ agent_name }) => agent_name)).toEqual(["west-1"]);
  });

  it("FLOW-02 EXEC-05 says which agent it waits for, and in the end which one it needed", async () => {
    const run = await start({
      version: "1",
      nodes: {
        far: {
          ...{ type: "connector.action", connector: "echo", action: "echo", timeout: "3s" },
          execution: { mode: "node", selector: { tag: "nobody" } },
        },
      },
    });
    await until(async () => (await shown(run)).nodes[0]?.waiting_for?.includes("the tag nobody") ?? false);
    const { failure } = await finished(run);
    expect(failure).toMatchObject({ code: "NO_AGENT_AVAILABLE" });
    expect(failure?.message).toMatch(/an agent with the tag nobody: `holdfast agent list`/);
  });

  it("FLOW-03 a script that fails is node_failed, with what its agent reported", async () => {
    const run = await start({
      version: "1",
      nodes: { step: { type: "agent.execute", script: "exit 3", sandbox: { backend: "host" } } },
    });
    expect(await finished(run)).toMatchObject({ status: "failed" });
    expect(brief(await eventsOf(run))).toContain("node_failed step");
  });
});

describe("a worker that is killed", () => {
  const file = join(scratchDirectory(), "effects");
  const step = (name: string, after?: string) => ({
    ...{ type: "agent.execute", script: `echo ${name} >> ${file}; sleep 0.2`, sandbox: { backend: "host" } },
    ...(after ? { after: [after] } : {}),
  });

  it("FLOW-02 at any event neither loses nor repeats an effect", async () => {
    writeFileSync(file, "");
    const run = await start({
      version: "1",
      nodes: {
        one: step("one"),
        two: step("two", "one"),
        pause: { type: "wait", for: "1s", after: ["two"] },
        three: step("three", "pause"),
      },
    });
    let kills = 0;
    for (let seen = 0; ; ) {
      const { length } = await eventsOf(run);
      if (!["queued", "running"].includes((await shown(run)).status)) break;
      if (length === seen || kills >= 4) {
        await new Promise((resolve) => setTimeout(resolve, 50));
        continue;
      }
      seen = length;
      const worker = site.installation.upFile().children["worker"]?.pid;
      if (worker === undefined) continue;
      try {
        process.kill(worker, "SIGKILL");
        kills += 1;
      } catch {
        // It is being started again.
      }
    }
    expect(kills).toBeGreaterThan(1);
    expect(await shown(run)).toMatchObject({ status: "succeeded" });
    expect(readFileSync(file, "utf8").trim().split("\n")).toEqual(["one", "two", "three"]);
    const ends = (await eventsOf(run)).filter(({ type }) => type.startsWith("run_") && type !== "run_started");
    expect(ends.map(({ type }) => type)).toEqual(["run_succeeded"]);
  });
});
