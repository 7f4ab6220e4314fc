// holdfast task: what nodes are asked to do.

import {
  cancelTask,
  getTask,
  listTasks,
  listTaskTypes,
  TaskStatus,
  terminalStatuses,
} from "@holdfast/contracts/endpoints/tasks";
import { Command, Option } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { findNode } from "../../client/find-node.ts";
import { nextPage, printResult, table } from "../../output.ts";
import { wholeNumber } from "../options.ts";
import { describeTask, describeTypes, taskRows } from "./describe.ts";
import { addRun } from "./run.ts";

type ListOptions = ServerOptions & {
  node?: string;
  status?: TaskStatus;
  type?: string;
  limit: number;
  cursor?: string;
};

export function taskCommand(): Command {
  const task = new Command("task").description("what nodes are asked to do");
  withServerOptions(task.command("types"))
    .description("the types of tasks there are, and their parameters")
    .action(async (options: ServerOptions) => {
      const client = await connect(options);
      printResult(options, await client(listTaskTypes, {}), ({ items }) => describeTypes(items));
    });
  addRun(task);
  withServerOptions(task.command("list"))
    .description("list tasks, newest first")
    .option("--node <id or name>", "only of this node")
    .addOption(new Option("--status <status>").choices(TaskStatus.options))
    .option("--type <type>", "only of this type")
    .option("--limit <count>", "1 to 200", wholeNumber({ min: 1, max: 200 }), 50)
    .option("--cursor <cursor>", "next_cursor of the previous page")
    .action(async (options: ListOptions) => {
      const client = await connect(options);
      const node = options.node === undefined ? undefined : await findNode(client, options.node);
      const { status, type, limit, cursor } = options;
      const page = await client(listTasks, { query: { node_id: node?.id, status, type, limit, cursor } });
      printResult(options, page, ({ items, next_cursor }) => {
        if (items.length === 0) return "No task matches.";
        return table(items, taskRows) + nextPage(items, next_cursor);
      });
    });
  withServerOptions(task.command("show"))
    .description("show a task: state, progress, timings, result")
    .argument("<id>")
    .action(async (id: string, options: ServerOptions) => {
      const client = await connect(options);
      printResult(options, await client(getTask, { params: { task_id: id } }), describeTask);
    });
  withServerOptions(task.command("cancel"))
    .description("cancel a task, also while it runs")
    .argument("<id>")
    .action(async (id: string, options: ServerOptions) => {
      const client = await connect(options);
      const cancelled = await client(cancelTask, { params: { task_id: id } });
      printResult(options, cancelled, ({ status }) => {
        if (status === "cancelled") return `Task ${id} is cancelled.`;
        if (terminalStatuses.has(status)) return `Task ${id} had ended already: ${status}.`;
        return `Cancellation requested; the node has not confirmed it yet. \`holdfast task show ${id}\` shows when it has.`;
      });
    });
  return task;
}
