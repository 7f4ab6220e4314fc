// holdfast allocation repair: has the node check an allocation's user and restore what is missing. After Ctrl-C the
// task keeps running.

import type { Client } from "@holdfast/contracts/client";
import { type Allocation, repairAllocation } from "@holdfast/contracts/endpoints/allocations";
import { getNode } from "@holdfast/contracts/endpoints/nodes";
import { getTask, type Task, terminalStatuses } from "@holdfast/contracts/endpoints/tasks";
import { type RepairedUser, repairInWords } from "@holdfast/contracts/words/allocations";
import type { Command } from "commander";
import { changesOf } from "../../client/changes.ts";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { findAllocation } from "../../client/find-allocation.ts";
import { ago, harmless, printResult } from "../../output.ts";
import { progressLine } from "../task/describe.ts";
import { failureOf } from "../task/run.ts";

type RepairOptions = ServerOptions & { wait: boolean };

export function addRepair(allocation: Command): void {
  withServerOptions(allocation.command("repair"))
    .description("restore a user that was deleted or damaged on the node; its home is not changed")
    .argument("<allocation>", "id, or user@node")
    .option("--no-wait", "do not wait for the node")
    .action(repair);
}

async function repair(wanted: string, options: RepairOptions): Promise<void> {
  const client = await connect(options);
  const allocation = await findAllocation(client, wanted);
  const asked = await client(repairAllocation, { params: { allocation_id: allocation.id } });
  if (!options.wait) {
    const hint = `holdfast task show ${asked.id}`;
    printResult(options, asked, () => `Repair requested. See its progress and result: ${hint}`);
    return;
  }
  const ended = await follow(client, allocation, asked, options);
  if (ended.status !== "completed") throw failureOf(ended);
  printResult(options, ended, () => repairInWords(allocation, ended.result as RepairedUser));
}

async function follow(
  client: Client,
  { node_id, node_name }: Allocation,
  asked: Task,
  { json }: { json?: boolean },
): Promise<Task> {
  const say = (text: string) => {
    if (!json) process.stderr.write(`${harmless(text)}\n`);
  };
  const node = await client(getNode, { params: { node_id } });
  if (node.connection !== "online")
    say(
      `Waiting for ${node_name}: offline, last heartbeat ${ago(node.heartbeat_at)}. Ctrl-C stops waiting; the task stays queued.`,
    );
  let latest = asked;
  const changes = changesOf(asked, {
    read: (query, signal) => client(getTask, { params: { task_id: asked.id }, query, signal }),
    ended: ({ status }) => terminalStatuses.has(status),
  });
  for await (const next of changes) {
    latest = next;
    if (!terminalStatuses.has(next.status)) say(progressLine(next));
  }
  return latest;
}
