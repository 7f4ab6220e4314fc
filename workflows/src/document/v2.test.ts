// Documents of the source system.

import { expect, it } from "vitest";
import { readWorkflow } from "./read.ts";

const agentId = "01a1e13c-bc3d-71c5-9b58-aada3c2346d4";
const v2 = {
  version: "v2",
  trigger: { type: "trigger.cron", config: { cron: "*/5 * * * *" } },
  nodes: [
    { id: "Fetch Page", type: "http.request", config: { method: "GET", url: "https://example.com" } },
    { id: "check", type: "condition", config: { path: "state.name", op: "eq", value: "open" } },
    {
      id: "issue",
      type: "connector.action",
      config: {
        connectorId: "github",
        actionId: "issue.create",
        input: { title: "x" },
        auth: { secretId: agentId },
        execution: { mode: "node", selector: { group: "alpha" } },
      },
    },
    {
      id: "script",
      type: "agent.execute",
      config: {
        execution: { mode: "executor", selector: { agentId } },
        task: { type: "shell", script: "true", env: { A: "b" } },
        sandbox: { backend: "docker", network: "none", timeoutMs: 30000, docker: { image: "node:24-alpine" } },
      },
    },
    { id: "end", type: "parallel.join" },
  ],
};

it("FLOW-01 accepts v2 documents: triggers, every type of node, their order, and targeting", () => {
  expect(readWorkflow(JSON.stringify(v2))).toEqual({
    ok: true,
    version: "v2",
    document: {
      version: "1",
      triggers: [{ type: "cron", schedule: "*/5 * * * *" }],
      nodes: {
        "fetch-page": { type: "http.request", method: "GET", url: "https://example.com" },
        check: { type: "condition", after: ["fetch-page"], if: '`input`.`state`.`name` = "open"' },
        issue: {
          ...{ type: "connector.action", after: ["check.true"], connector: "github", action: "issue.create" },
          ...{ input: { title: "x" }, execution: { mode: "node", selector: { group: "alpha" } } },
        },
        script: {
          ...{ type: "agent.execute", after: ["issue"], script: "true", env: { A: "b" }, timeout: "30000ms" },
          execution: { mode: "node", selector: { agentId } },
          sandbox: { backend: "docker", network: "none", image: "node:24-alpine" },
        },
        end: { type: "join", after: ["script"] },
      },
    },
  });
});

it.each(["trigger.manual", "trigger.webhook"])("FLOW-01 accepts the v2 trigger %s", (type) => {
  const read = readWorkflow(JSON.stringify({ ...v2, trigger: { type, config: { token: "t" } } }));
  expect(read.ok && read.document.triggers).toEqual([{ type: type.replace("trigger.", "") }]);
});

it.each([
  ["exists", undefined, "$exists(`input`.`a`)"],
  ["contains", "x", '$contains($string(`input`.`a`), "x")'],
  ["gte", 3, "`input`.`a` >= 3"],
  ["neq", null, "`input`.`a` != null"],
])("FLOW-01 turns the v2 condition %s into an expression", (op, value, expected) => {
  const nodes = [
    { id: "c", type: "condition", config: { path: "a", op, ...(value === undefined ? {} : { value }) } },
  ];
  const read = readWorkflow(JSON.stringify({ ...v2, nodes }));
  expect(read.ok && read.document.nodes["c"]).toEqual({ type: "condition", if: expected });
});

it("FLOW-01 names the place in the v2 document", () => {
  const text = JSON.stringify({ ...v2, nodes: [v2.nodes[0], { ...v2.nodes[4], id: "fetch-page" }] }, null, 2);
  const lines = text.split("\n");
  const read = readWorkflow(text);
  const [problem] = read.ok ? [] : read.problems;
  expect(problem?.message).toBe("Two nodes have the id fetch-page.");
  expect(lines[(problem?.line ?? 0) - 1]).toContain('"id": "fetch-page"');
  const unknown = readWorkflow(JSON.stringify({ ...v2, nodes: [{ id: "a", type: "agent.run" }] }));
  expect(unknown.ok ? [] : unknown.problems.map(({ path }) => path)).toEqual(["nodes[0].type"]);
});
