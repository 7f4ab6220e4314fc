// holdfast workflow run NAME: starts a run of the newest published version.

import { startRun } from "@holdfast/contracts/endpoints/runs";
import { UsageError } from "@holdfast/kit/settings";
import type { Command } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { printResult } from "../../output.ts";
import { findWorkflow } from "./find.ts";

export function addRun(workflow: Command): void {
  withServerOptions(workflow.command("run"))
    .description("run the newest published version of a workflow")
    .argument("<name>")
    .option("--input <json>", "what expressions read as input")
    .action(async (name: string, options: ServerOptions & { input?: string }) => {
      const client = await connect(options);
      const { id: workflow_id } = await findWorkflow(client, name);
      const body = options.input === undefined ? {} : { input: parse(options.input) };
      const run = await client(startRun, { params: { workflow_id }, body });
      printResult(
        options,
        run,
        ({ id }) => `Run ${id} of ${name} started. Watch it: \`holdfast run watch ${id}\`.`,
      );
    });
}

function parse(text: string) {
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError(`--input is ${JSON.stringify(text)}, which is not JSON.`);
  }
}
