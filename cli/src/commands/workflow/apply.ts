// holdfast workflow apply FILE: makes a document the draft of a workflow, and publishes it if requested.

import { basename } from "node:path";
import { applyWorkflow, publishWorkflow } from "@holdfast/contracts/endpoints/workflows";
import { UsageError } from "@holdfast/kit/settings";
import type { Command } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { printResult } from "../../output.ts";
import { readDocument } from "./file.ts";

type ApplyOptions = ServerOptions & { name?: string; publish?: boolean };

export function addApply(workflow: Command): void {
  withServerOptions(workflow.command("apply"))
    .description("create a workflow, or replace its draft, from a file")
    .argument("<file>", "YAML or JSON; - for standard input")
    .option("--name <name>", "of the workflow; by default that of the file")
    .option("--publish", "publish the draft as well")
    .action(async (file: string, options: ApplyOptions) => {
      const name = options.name ?? nameOfFile(file);
      const { text: source } = readDocument(file);
      const client = await connect(options);
      const applied = await client(applyWorkflow, { body: { name, source } });
      if (!options.publish) {
        const saved = applied.changed_since_published
          ? `Draft of ${name} saved (revision ${applied.revision}). Publish it: \`holdfast workflow publish ${name}\`.`
          : `The draft of ${name} is unchanged, and published as version ${applied.published_version}.`;
        printResult(options, applied, () => saved);
        return;
      }
      const body = { revision: applied.revision };
      const published = await client(publishWorkflow, { params: { workflow_id: applied.id }, body });
      printResult(options, published, ({ version }) => `${name} is published as version ${version}.`);
    });
}

function nameOfFile(file: string): string {
  if (file === "-") throw new UsageError("Standard input has no name: add --name <name>.");
  return basename(file).replace(/\.(ya?ml|json)$/, "");
}
