// holdfast task: run tasks on nodes, list, show, cancel and replay them.

import {
  cancelTask,
  getTask,
  listTasks,
  listTaskTypes,
  replayTask,
  type TaskStatus,
  terminalStatuses,
} from "@holdfast/contracts/endpoints/tasks";
import { taskStatusTitles } from "@holdfast/contracts/words/state-titles";
import { Command } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { findNode } from "../../client/find-node.ts";
import { nextPage, printResult, table } from "../../output.ts";
import { wholeNumber } from "../options.ts";
import { stateOption } from "../state-option.ts";
import { describeTask, describeTypes, taskRows } from "./describe.ts";
import { addRun } from "./run.ts";

type ListOptions = ServerOptions & {
  node?: string;
  status?: TaskStatus;
  type?: string;
  incident?: string;
  limit: number;
  cursor?: string;
};

export function taskCommand(): Command {
  const task = new Command("task").description("tasks on nodes");
  withServerOptions(task.command("types"))
    .description("list the task types and their parameters")
    .action(async (options: ServerOptions) => {
      const client = await connect(options);
      printResult(options, await client(listTaskTypes, {}), ({ items }) => describeTypes(items));
    });
  addRun(task);
  withServerOptions(task.command("list"))
    .description("list tasks, newest first")
    .option("--node <id or name>", "only on this node")
    .addOption(stateOption("--status <status>", "by status", taskStatusTitles))
    .option("--type <type>", "only of this type")
    .option("--incident <id>", "only those created in the course of this incident")
    .option("--limit <count>", "1 to 200", wholeNumber({ min: 1, max: 200 }), 50)
    .option("--cursor <cursor>", "next_cursor of the previous page")
    .action(async (options: ListOptions) => {
      const client = await connect(options);
      const node = options.node === undefined ? undefined : await findNode(client, options.node);
      const { status, type, incident: incident_id, limit, cursor } = options;
      const query = { node_id: node?.id, status, type, incident_id, limit, cursor };
      const page = await client(listTasks, { query });
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
    .description("cancel a queued or running task")
    .argument("<id>")
    .action(async (id: string, options: ServerOptions) => {
      const client = await connect(options);
      const cancelled = await client(cancelTask, { params: { task_id: id } });
      printResult(options, cancelled, ({ status }) => {
        if (status === "cancelled") return `Task ${id} cancelled.`;
        if (terminalStatuses.has(status)) return `Task ${id} has already ended: ${status}.`;
        return `Cancellation requested; the node has not confirmed it yet. \`holdfast task show ${id}\` shows when it has.`;
      });
    });
  withServerOptions(task.command("replay"))
    .description("run a task again that got no result, if it may run twice")
    .argument("<id>")
    .action(async (id: string, options: ServerOptions) => {
      const client = await connect(options);
      const replayed = await client(replayTask, { params: { task_id: id } });
      printResult(
        options,
        replayed,
        (made) =>
          `Task ${made.id} created, which repeats ${id}. \`holdfast task show ${made.id}\` shows its result.`,
      );
    });
  return task;
}
