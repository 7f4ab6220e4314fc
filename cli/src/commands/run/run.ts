// holdfast run: runs of workflows.

import { setTimeout as wait } from "node:timers/promises";
import {
  cancelRun,
  getRun,
  listRunEvents,
  listRuns,
  type Run,
  type RunEventEntry,
  type RunNode,
  type RunState,
} from "@holdfast/contracts/endpoints/runs";
import { runNodeStateTitles, runStateTitles } from "@holdfast/contracts/words/run-titles";
import { versionWords } from "@holdfast/contracts/words/run-versions";
import { Command } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { exitCodes } from "../../failure.ts";
import { harmless, jsonText, localTime, nextPage, printResult, table } from "../../output.ts";
import { stateOption } from "../state-option.ts";
import { addAnswers } from "./answers.ts";

export function runCommand(): Command {
  const run = new Command("run").description("runs of workflows");
  addList(run);
  addShow(run);
  addEvents(run);
  addDecisions(run);
  addAnswers(run);
  return run;
}

function addList(run: Command): void {
  withServerOptions(run.command("list"))
    .description("list runs, newest first")
    .addOption(stateOption("--status <status>", "by state", runStateTitles))
    .option("--cursor <cursor>", "where the next page begins")
    .action(async (options: ServerOptions & { status?: RunState; cursor?: string }) => {
      const client = await connect(options);
      const { status, cursor } = options;
      const page = await client(listRuns, { query: { status, cursor } });
      printResult(options, page, ({ items, next_cursor }) =>
        items.length === 0
          ? "No run matches. Start one: `holdfast workflow run <name>`."
          : table(items, [
              { title: "id", of: (row) => row.id },
              { title: "workflow", of: (row) => `${row.workflow_name} (${versionWords(row)})` },
              { title: "state", of: (row) => runStateTitles[row.status].title },
              { title: "started by", of: (row) => row.started_by },
              { title: "created", of: (row) => localTime(row.created_at) },
              { title: "ended", of: (row) => localTime(row.finished_at) },
            ]) + nextPage(items, next_cursor),
      );
    });
}

function addShow(run: Command): void {
  withServerOptions(run.command("show"))
    .description("show a run with its nodes, and what each waits for")
    .argument("<id>")
    .action(async (id: string, options: ServerOptions) => {
      const client = await connect(options);
      const shown = await client(getRun, { params: { run_id: id } });
      printResult(options, shown, ({ nodes, ...row }) => `${describe(row)}\n\n${nodesTable(nodes)}`);
    });
}

function addEvents(run: Command): void {
  withServerOptions(run.command("events"))
    .description("print the events of a run, oldest first")
    .argument("<id>")
    .action(async (id: string, options: ServerOptions) => {
      await follow(id, options, { once: true });
    });
  withServerOptions(run.command("watch"))
    .description("print the events of a run until it ends; exits with 1 unless it succeeds")
    .argument("<id>")
    .action(async (id: string, options: ServerOptions) => {
      const status = await follow(id, options, { once: false });
      if (status !== "succeeded") process.exitCode = exitCodes.failed;
    });
}

function addDecisions(run: Command): void {
  withServerOptions(run.command("cancel"))
    .description("cancel a run: nothing new starts, and steps that are running end by themselves")
    .argument("<id>")
    .action(async (id: string, options: ServerOptions) => {
      const client = await connect(options);
      const cancelled = await client(cancelRun, { params: { run_id: id } });
      printResult(
        options,
        cancelled,
        () => `Cancellation of run ${id} requested. Watch it: \`holdfast run watch ${id}\`.`,
      );
    });
}

const POLL_MS = 500;
const isOver = (status: RunState) => status !== "queued" && status !== "running";

async function follow(id: string, options: ServerOptions, { once }: { once: boolean }): Promise<RunState> {
  const client = await connect(options);
  for (let after = 0; ; ) {
    const { items, status } = await client(listRunEvents, { params: { run_id: id }, query: { after } });
    for (const event of items) process.stdout.write(`${options.json ? jsonText(event) : harmless(line(event))}\n`);
    after = items.at(-1)?.seq ?? after;
    // The state is read with the events: one that has ended has no further ones.
    if (items.length === 0 && (once || isOver(status))) return status;
    if (items.length === 0) await wait(POLL_MS);
  }
}

function line({ at, type, node, attempt, data }: RunEventEntry): string {
  const where = node === null ? "" : ` ${node}${attempt !== null && attempt > 1 ? ` (attempt ${attempt})` : ""}`;
  const what = Object.keys(data).length === 0 ? "" : ` ${JSON.stringify(data)}`;
  return `${localTime(at)} ${type}${where}${what}`;
}

function describe(run: Run): string {
  return [
    `Run ${run.id} of ${run.workflow_name}, ${versionWords(run)}: ${runStateTitles[run.status].title}`,
    ...(run.failure ? [`  ${run.failure.message} (${run.failure.code})`] : []),
    ...(run.cancel_requested && !isOver(run.status) ? ["  Cancellation was requested."] : []),
    `  started by ${run.started_by}, created ${localTime(run.created_at)}, ended ${localTime(run.finished_at) ?? "–"}`,
    `  correlation id ${run.correlation_id}`,
  ].join("\n");
}

const nodesTable = (nodes: readonly RunNode[]) =>
  table(nodes, [
    { title: "node", of: (row) => row.id },
    { title: "type", of: (row) => row.type },
    { title: "state", of: (row) => runNodeStateTitles[row.status].title },
    { title: "attempt", of: (row) => (row.attempt === null ? null : String(row.attempt)) },
    { title: "waits for", of: (row) => row.waiting_for ?? row.failure?.message ?? null },
  ]);
