// holdfast workflow publish NAME: the draft becomes the next version.

import { publishWorkflow } from "@holdfast/contracts/endpoints/workflows";
import type { Command } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { printResult } from "../../output.ts";
import { changeLines } from "./diff.ts";
import { findWorkflow } from "./find.ts";

export function addPublish(workflow: Command): void {
  withServerOptions(workflow.command("publish"))
    .description("publish the draft of a workflow as its next version")
    .argument("<name>")
    .action(async (name: string, options: ServerOptions) => {
      const client = await connect(options);
      const { id: workflow_id } = await findWorkflow(client, name);
      const published = await client(publishWorkflow, { params: { workflow_id }, body: {} });
      printResult(options, published, ({ workflow: { name }, version, changes }) =>
        [`${name} is published as version ${version}.`, ...changes.flatMap(changeLines)].join("\n"),
      );
    });
}
