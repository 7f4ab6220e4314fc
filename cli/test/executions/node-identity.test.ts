// The machine of an installation runs steps with the identity of its node: no pairing token, nothing stored on its disk.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { listNodes } from "@holdfast/contracts/endpoints/nodes";
import { changePolicy } from "@holdfast/contracts/endpoints/policy";
import { dispatchPaths } from "@holdfast/contracts/execution/dispatch";
import { beforeAll, describe, expect, it } from "vitest";
import { hostBackend } from "../../../node-agent/test/support/host-backend.ts";
import { ask, dispatchBody } from "../../../testkit/gateway/agents.ts";
import { until } from "../../../testkit/processes/holdfast.ts";
import { type ExecutionSite, openExecutionSite, shellStep } from "../support/executions.ts";

let site: ExecutionSite;

beforeAll(async () => {
  const node = { HOLDFAST_UP_AGENT: "yes", HOLDFAST_AGENT_EXECUTIONS: "on", HOLDFAST_NODE_EXECUTIONS: "on" };
  site = await openExecutionSite({ ...node, ...hostBackend });
  await until(async () => (await site.agents()).some(({ status }) => status === "online"));
});

describe("a node that runs steps with its own identity", () => {
  it("EXEC-08 serves both kinds of step, and keeps its agent token in memory", async () => {
    const [node] = (await site.call(listNodes, {})).items;
    expect(await site.agents()).toMatchObject([{ name: node?.name, nodeId: node?.id, status: "online" }]);
    const echo = { payload: { connectorId: "echo", actionId: "echo", input: { say: "hello" } } };
    const answers = await Promise.all(
      [dispatchBody(site.org, echo), shellStep(site.org, "echo ran")].map((body) =>
        ask(site, dispatchPaths.dispatch, { body }),
      ),
    );
    expect(answers.map(({ body }) => body)).toMatchObject([
      { status: "succeeded" },
      { status: "succeeded", output: { stdout: "ran\n" } },
    ]);
    const directory = join(site.installation.dataDir, "agent");
    const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
    expect(files.length).toBeGreaterThan(3);
    for (const file of files)
      expect(readFileSync(join(file.parentPath, file.name), "latin1")).not.toContain("hfx_");
  });

  it("EXEC-07 runs none when policy no longer allows it", async () => {
    await site.call(changePolicy, { body: { key: "node.executions", value: "off" } });
    const step = () => ask(site, dispatchPaths.dispatch, { body: shellStep(site.org, "true") });
    await expect.poll(async () => (await step()).body["code"], { timeout: 120_000 }).toBe("NO_AGENT_AVAILABLE");
  });
});
