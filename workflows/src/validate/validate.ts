// Everything about a document that its schema cannot say.

import type { Finding } from "../document/problem.ts";
import type { Node, WorkflowDocument } from "../document/schema.ts";
import { keyOfTrigger } from "../triggers/due.ts";
import { checkConnectors } from "./connectors.ts";
import { checkExpressions } from "./expressions.ts";
import { checkGraph } from "./graph.ts";
import { scheduleProblem } from "./schedule.ts";

export function validate(document: WorkflowDocument): Finding[] {
  return [
    ...checkTriggers(document),
    ...Object.entries(document.nodes).flatMap(([id, node]) => checkExecution(id, node)),
    ...checkConnectors(document),
    ...checkGraph(document),
    ...checkExpressions(document),
  ];
}

function checkTriggers({ triggers = [] }: WorkflowDocument): Finding[] {
  const webhooks = triggers.flatMap(({ type }, index) => (type === "webhook" ? [index] : []));
  const keys = triggers.map((trigger) => (trigger.type === "cron" ? keyOfTrigger(trigger) : undefined));
  return [
    ...keys.flatMap((key, index): Finding[] =>
      key === undefined || keys.indexOf(key) === index
        ? []
        : [{ code: "same_trigger", message: "This schedule is listed twice.", path: ["triggers", index] }],
    ),
    ...triggers.flatMap((trigger, index): Finding[] => {
      if (trigger.type !== "cron") return [];
      const problem = scheduleProblem(trigger);
      if (!problem) return [];
      const field = problem.code === "timezone" ? "timezone" : "schedule";
      return [{ ...problem, path: ["triggers", index, field] }];
    }),
    ...webhooks.slice(1).map((index): Finding => {
      return { code: "several_webhooks", message: "A workflow has one webhook.", path: ["triggers", index] };
    }),
  ];
}

/** Scripts run on agents only, and requests of the worker in the worker only. */
function checkExecution(id: string, node: Node): Finding[] {
  if (!("execution" in node || node.type === "agent.execute")) return [];
  const { mode = defaultMode(node), selector } = node.execution ?? {};
  const path = ["nodes", id, ...(node.execution ? ["execution"] : [])];
  if (node.type === "agent.execute" && mode !== "node") {
    return [
      { code: "execution_mode", message: "agent.execute runs on agents: set execution.mode to node.", path },
    ];
  }
  if (node.type === "http.request" && mode !== "cloud") {
    const message = "http.request runs in the worker. On an agent, use connector.action or agent.execute.";
    return [{ code: "execution_mode", message, path }];
  }
  if (selector && mode !== "node") {
    return [{ code: "execution_mode", message: "A selector needs execution.mode node.", path }];
  }
  return [];
}

const defaultMode = ({ type }: Node) => (type === "agent.execute" ? "node" : "cloud");
