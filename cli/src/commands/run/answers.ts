// holdfast run approve, reject, send and retry: what people decide about a run that waits or has failed.

import { getRun, type Run, resumeRun, retryRun, sendRunEvent } from "@holdfast/contracts/endpoints/runs";
import { getWorkflow } from "@holdfast/contracts/endpoints/workflows";
import { UsageError } from "@holdfast/kit/settings";
import type { Command } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { printResult } from "../../output.ts";

export function addAnswers(run: Command): void {
  addDecision(run, { verb: "approve", alias: "resume", approved: true });
  addDecision(run, { verb: "reject", approved: false });
  addSend(run);
  addRetry(run);
}

function addDecision(
  run: Command,
  { verb, alias, approved }: { verb: string; alias?: string; approved: boolean },
): void {
  const command = withServerOptions(run.command(verb))
    .description(
      approved
        ? "approve what a node of a run waits for"
        : "reject what a node of a run waits for: the node fails",
    )
    .argument("<id>")
    .argument("<node>")
    .option("--output <json>", "what the node returns")
    .action(async (id: string, node: string, options: ServerOptions & { output?: string }) => {
      const client = await connect(options);
      const body = { node, approved, ...outputOf(options) };
      const resumed = await client(resumeRun, { params: { run_id: id }, body });
      printResult(options, resumed, () => `${node} of run ${id} ${approved ? "approved" : "rejected"}.`);
    });
  if (alias) command.alias(alias);
}

function addSend(run: Command): void {
  withServerOptions(run.command("send"))
    .description("send an event to the nodes of a run that wait for it")
    .argument("<id>")
    .argument("<event>")
    .option("--output <json>", "what the nodes return")
    .action(async (id: string, event: string, options: ServerOptions & { output?: string }) => {
      const client = await connect(options);
      const sent = await client(sendRunEvent, { params: { run_id: id }, body: { event, ...outputOf(options) } });
      printResult(options, sent, () => `Event ${event} sent to run ${id}.`);
    });
}

function addRetry(run: Command): void {
  withServerOptions(run.command("retry"))
    .description("continue a failed run where it failed; steps that have succeeded are not repeated")
    .argument("<id>")
    .option("--latest", "with the newest published version of its workflow")
    .action(async (id: string, options: ServerOptions & { latest?: boolean }) => {
      const client = await connect(options);
      const params = { run_id: id };
      const version = options.latest ? await latestVersion() : undefined;
      const retried: Run = await client(retryRun, { params, body: version === undefined ? {} : { version } });
      printResult(
        options,
        retried,
        () => `Run ${id} continues with version ${retried.version}. Watch it: \`holdfast run watch ${id}\`.`,
      );

      async function latestVersion(): Promise<number | undefined> {
        const { workflow_id } = await client(getRun, { params });
        return (await client(getWorkflow, { params: { workflow_id } })).published_version ?? undefined;
      }
    });
}

function outputOf({ output }: { output?: string }): { output?: Record<string, never> } {
  if (output === undefined) return {};
  try {
    return { output: JSON.parse(output) };
  } catch {
    throw new UsageError(`--output is ${JSON.stringify(output)}, which is not JSON.`);
  }
}
