// holdfast execution: steps that were dispatched to agents: list, show, follow their output, cancel.

import { setTimeout as wait } from "node:timers/promises";
import type { Client } from "@holdfast/contracts/client";
import {
  cancelExecution,
  type ExecutionState,
  endedStates,
  getExecution,
  listExecutions,
  readExecutionOutput,
} from "@holdfast/contracts/endpoints/executions";
import { executionStateTitles } from "@holdfast/contracts/words/state-titles";
import { Command } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { harmless, nextPage, printResult, table } from "../../output.ts";
import { wholeNumber } from "../options.ts";
import { stateOption } from "../state-option.ts";
import { describeExecution, executionRows } from "./describe.ts";

type ListOptions = ServerOptions & { status?: ExecutionState; agent?: string; limit: number; cursor?: string };

export function executionCommand(): Command {
  const execution = new Command("execution").description("steps that were dispatched to agents");
  withServerOptions(execution.command("list"))
    .description("list executions, newest first")
    .addOption(stateOption("--status <status>", "by state", executionStateTitles))
    .option("--agent <id>", "only those given to this agent")
    .option("--limit <count>", "1 to 200", wholeNumber({ min: 1, max: 200 }), 50)
    .option("--cursor <cursor>", "next_cursor of the previous page")
    .action(async (options: ListOptions) => {
      const client = await connect(options);
      const { status, agent: agent_id, limit, cursor } = options;
      const page = await client(listExecutions, { query: { status, agent_id, limit, cursor } });
      printResult(options, page, ({ items, next_cursor }) =>
        items.length === 0 ? "No execution matches." : table(items, executionRows) + nextPage(items, next_cursor),
      );
    });
  withServerOptions(execution.command("show"))
    .description("show an execution: state, agent, result, and why it waits")
    .argument("<id>")
    .action(async (id: string, options: ServerOptions) => {
      const client = await connect(options);
      printResult(options, await client(getExecution, { params: { execution_id: id } }), describeExecution);
    });
  withServerOptions(execution.command("output"))
    .description("print what the step prints, until it ends")
    .argument("<id>")
    .action(async (id: string, options: ServerOptions) => followOutput(await connect(options), id, options));
  withServerOptions(execution.command("cancel"))
    .description("cancel an execution")
    .argument("<id>")
    .action(async (id: string, options: ServerOptions) => {
      const client = await connect(options);
      const cancelled = await client(cancelExecution, { params: { execution_id: id } });
      printResult(options, cancelled, ({ status }) => {
        if (status === "cancelled") return `Execution ${id} cancelled.`;
        if (endedStates.has(status)) return `Execution ${id} has already ended: ${status}.`;
        return `Cancellation requested; the agent has not confirmed it yet. \`holdfast execution show ${id}\` shows when it has.`;
      });
    });
  return execution;
}

const LOOK_AGAIN_MS = 500;

/** Each piece on the stream that the step wrote it to; as JSON, a line for each piece. */
async function followOutput(client: Client, id: string, { json }: ServerOptions): Promise<void> {
  for (let after = 0; ; ) {
    const { chunks, ended } = await client(readExecutionOutput, {
      params: { execution_id: id },
      query: { after },
    });
    for (const chunk of chunks) {
      if (json) process.stdout.write(`${JSON.stringify(chunk)}\n`);
      else process[chunk.stream].write(harmless(chunk.text));
    }
    after = chunks.at(-1)?.seq ?? after;
    if (ended && chunks.length === 0) return;
    if (!ended) await wait(LOOK_AGAIN_MS);
  }
}
