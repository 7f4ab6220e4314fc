// holdfast task run: runs a task and follows it to its end. Ctrl-C cancels it on the node and waits
// for the node to confirm; a second Ctrl-C exits immediately. It ends, too, when the node reports that it cannot deliver the result.

import { randomUUID } from "node:crypto";
import type { Client } from "@holdfast/contracts/client";
import { getNode, type Node } from "@holdfast/contracts/endpoints/nodes";
import {
  cancelTask,
  createTask,
  getTask,
  listTaskTypes,
  type Task,
  terminalStatuses,
} from "@holdfast/contracts/endpoints/tasks";
import type { Command } from "commander";
import { changesOf } from "../../client/changes.ts";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { findNode } from "../../client/find-node.ts";
import { exitCodes, Refusal } from "../../failure.ts";
import { ago, harmless, jsonText, localTime, printResult, readable, span } from "../../output.ts";
import { listenForStop } from "../../up/stop-request.ts";
import { collected, wholeNumber } from "../options.ts";
import { progressLine } from "./describe.ts";
import { type ParamOptions, readParams } from "./params.ts";
import { undelivered } from "./undelivered.ts";

type RunOptions = ServerOptions &
  ParamOptions & { priority?: number; expires?: number; follow?: boolean; wait: boolean };

export function addRun(task: Command): void {
  withServerOptions(task.command("run"))
    .description("run a task on a node and print its result")
    .argument("<node>", "id or name")
    .argument("<type>", "see `holdfast task types`")
    .option("--params <json>", "the parameters as a JSON object")
    .option("--param <key=value>", "one parameter; repeatable", collected)
    .option("--priority <n>", "0 to 9; higher runs first", wholeNumber({ min: 0, max: 9 }))
    .option("--expires <seconds>", "how long it may wait to be started", wholeNumber({ min: 5, max: 86_400 }))
    .option("--follow", "print progress; with --json one line per change")
    .option("--no-wait", "do not wait for the result")
    .action(run);
}

async function run(wanted: string, type: string, options: RunOptions): Promise<void> {
  const client = await connect(options);
  const node = await findNode(client, wanted);
  const body = {
    type,
    params: readParams(options, options.param ? await paramsSchema(client, type) : undefined),
    priority: options.priority,
    expires_in_seconds: options.expires,
  };
  const stop = options.wait ? listenForStop() : undefined;
  const created = await client(createTask, {
    params: { node_id: node.id },
    body,
    idempotencyKey: randomUUID(),
  });
  if (!stop) {
    const hint = `holdfast task show ${created.id}`;
    printResult(
      options,
      created,
      () => `Task ${created.id} queued for ${node.name}. See its state and result: ${hint}`,
    );
    return;
  }
  stop.hurry.addEventListener("abort", () => leaveAtOnce(created));
  if (!options.json) warnIfUnavailable(node, created);
  const ended = await watch(client, created, { ...options, asked: stop.asked });
  printEnd(ended, options);
  if (stop.asked.aborted) process.exitCode = exitCodes.interrupted;
  else if (ended.status !== "completed") throw failureOf(ended);
}

/** Follows the task to its end; on a stop request, cancels it and keeps following. */
async function watch(
  client: Client,
  created: Task,
  options: { json?: boolean; follow?: boolean; asked: AbortSignal },
): Promise<Task> {
  let latest = created;
  const show = (task: Task) => {
    latest = task;
    if (!options.follow || terminalStatuses.has(task.status)) return;
    if (options.json) process.stdout.write(`${jsonText(task)}\n`);
    else process.stderr.write(`${harmless(progressLine(task))}\n`);
  };
  show(created);
  const follow = async (signal?: AbortSignal) => {
    const changes = changesOf(latest, {
      read: async (wait, deadline) => {
        const task = await client(getTask, {
          params: { task_id: created.id },
          query: { ...wait, until: options.follow ? "change" : "end" },
          signal: deadline,
        });
        if (task.status !== "dispatched") return task;
        const { attention } = await client(getNode, { params: { node_id: task.node_id }, signal: deadline });
        const refusal = undelivered(task, attention);
        if (refusal) throw refusal;
        return task;
      },
      ended: (task) => terminalStatuses.has(task.status),
      signal,
    });
    for await (const task of changes) show(task);
  };
  await follow(options.asked);
  if (!terminalStatuses.has(latest.status)) {
    if (!options.json)
      process.stderr.write("Cancelling the task on the node. Press Ctrl-C again to exit without waiting.\n");
    show(await client(cancelTask, { params: { task_id: created.id } }));
    await follow();
  }
  return latest;
}

function printEnd(task: Task, options: { json?: boolean; follow?: boolean }): void {
  if (options.json) process.stdout.write(`${jsonText(task)}\n`);
  else if (task.status === "completed") process.stdout.write(`${harmless(readable(task.result))}\n`);
  else if (task.status === "cancelled") process.stderr.write(`Task ${task.id} cancelled.\n`);
}

export function failureOf(task: Task): Refusal {
  const { code, message, next_step } = task.failure ?? {
    code: task.status,
    message: `The task is ${task.status}.`,
    next_step: "Run it again.",
  };
  return new Refusal(code, {
    message,
    nextStep: next_step,
    details: { task: task.id, status: task.status, correlation_id: task.correlation_id },
  });
}

function warnIfUnavailable(node: Node, task: Task): void {
  const notes: string[] = [];
  if (node.connection !== "online") notes.push(`is offline, last heartbeat ${ago(node.heartbeat_at)}`);
  if (node.status !== "active") notes.push(`is ${node.status}`);
  if (notes.length === 0) return;
  const patience = span(Date.parse(task.expires_at) - Date.now());
  process.stderr.write(
    `${node.name} ${notes.join(" and ")}. The task waits up to ${patience}, until ${localTime(task.expires_at)}.\n`,
  );
}

function leaveAtOnce(task: Task): never {
  process.stderr.write(`Task ${task.id} keeps running. See its state: holdfast task show ${task.id}\n`);
  process.exit(exitCodes.interrupted);
}

async function paramsSchema(client: Client, type: string): Promise<unknown> {
  const { items } = await client(listTaskTypes, {});
  return items.find((one) => one.type === type)?.params;
}
