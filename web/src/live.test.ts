import type { LiveMessage } from "@holdfast/contracts/public/live";
import { describe, expect, it } from "vitest";
import { concerns } from "./live.ts";

const message = (topic: LiveMessage["topic"], ids: string[], node_ids: string[] = []): LiveMessage => ({
  type: "changed",
  topic,
  ids,
  node_ids,
});
const key = (...rest: unknown[]) => ["org", "o", ...rest];

describe("what is read again when something changed", () => {
  it.each([
    ["a node: its page", message("node", ["n1"]), key("nodes", "n1"), true],
    ["a node: its diagnostics", message("node", ["n1"]), key("nodes", "n1", "diagnostics"), true],
    ["a node: the list", message("node", ["n1"]), key("nodes", "list"), true],
    ["a node: not another's page", message("node", ["n1"]), key("nodes", "n2"), false],
    ["a node: tokens, which show who joined", message("node", ["n1"]), key("enrollment-tokens", "list"), true],
    ["a task: its page", message("task", ["t1"], ["n1"]), key("tasks", "t1"), true],
    [
      "a task: the tasks of its node",
      message("task", ["t1"], ["n1"]),
      key("tasks", "list", { node_id: "n1" }),
      true,
    ],
    [
      "a task: not those of others",
      message("task", ["t1"], ["n1"]),
      key("tasks", "list", { node_id: "n2" }),
      false,
    ],
    ["a task: all tasks", message("task", ["t1"], ["n1"]), key("tasks", "list", {}), true],
    ["a task: its node, which counts it", message("task", ["t1"], ["n1"]), key("nodes", "n1"), true],
    ["a task: no tokens", message("task", ["t1"], ["n1"]), key("enrollment-tokens", "list"), false],
    ["an allocation: the list", message("allocation", ["a1"], ["n1"]), key("allocations", "list", {}), true],
    ["an allocation: no node", message("allocation", ["a1"], ["n1"]), key("nodes", "n1"), false],
    ["the fleet: its picture", message("fleet", []), key("fleet", "picture", {}), true],
    ["the fleet: the list of nodes", message("fleet", []), key("nodes", "list", {}), true],
    ["the fleet: no node's page", message("fleet", []), key("nodes", "n1"), false],
    ["a verdict: its node's page", message("verdict", ["n1"]), key("nodes", "n1"), true],
    ["a verdict: its explanation", message("verdict", ["n1"]), key("nodes", "n1", "explanation"), true],
    ["a verdict: not another's", message("verdict", ["n1"]), key("nodes", "n2"), false],
    ["an execution: its page", message("execution", ["e1"]), key("executions", "e1"), true],
    ["an execution: what it prints", message("execution", ["e1"]), key("executions", "e1", "output", false), true],
    ["an execution: agents, which count it", message("execution", ["e1"]), key("agents", "list"), true],
    ["an agent: the list", message("agent", ["g1"]), key("agents", "list"), true],
    ["an agent: no execution", message("agent", ["g1"]), key("executions", "e1"), false],
    ["nothing of ours: people", message("node", ["n1"]), key("members"), false],
  ])("DASH-04 %s", (_, changed, shown, expected) => {
    expect(concerns(changed, shown)).toBe(expected);
  });
});
