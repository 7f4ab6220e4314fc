// holdfast workflow convert FILE: the same document in the other format, or of version 1.

import { UsageError } from "@holdfast/kit/settings";
import { documentFormats, writeWorkflow } from "@holdfast/workflows/document/write";
import type { Command } from "commander";
import { readDocument } from "./file.ts";

export function addConvert(workflow: Command): void {
  workflow
    .command("convert")
    .description("print a workflow document as YAML or JSON; v2 documents become version 1")
    .argument("<file>", "YAML or JSON; - for standard input")
    .option("--to <format>", "yaml or json", "yaml")
    .action((file: string, { to }: { to: string }) => {
      const format = documentFormats.find((one) => one === to);
      if (!format) throw new UsageError(`--to is ${JSON.stringify(to)}; expected yaml or json.`);
      process.stdout.write(writeWorkflow(readDocument(file).document, format));
    });
}
