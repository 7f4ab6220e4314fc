// holdfast workflow diff BEFORE AFTER: what is different between two documents, by their structure.

import type { WorkflowChange } from "@holdfast/contracts/endpoints/workflows";
import { diffWorkflows } from "@holdfast/workflows/document/diff";
import type { Command } from "commander";
import { printResult } from "../../output.ts";
import { readDocument } from "./file.ts";

export function addDiff(workflow: Command): void {
  workflow
    .command("diff")
    .description("compare two workflow documents; formats and the order of fields do not matter")
    .argument("<before>")
    .argument("<after>")
    .option("--json", "print JSON")
    .action((before: string, after: string, options: { json?: boolean }) => {
      const changes = diffWorkflows(readDocument(before).document, readDocument(after).document);
      printResult(options, { changes }, () =>
        changes.length === 0 ? "No differences." : changes.flatMap(changeLines).join("\n"),
      );
    });
}

export function changeLines(change: WorkflowChange): string[] {
  switch (change.kind) {
    case "added":
      return [`+ ${change.path}: ${JSON.stringify(change.after)}`];
    case "removed":
      return [`- ${change.path}: ${JSON.stringify(change.before)}`];
    case "changed":
      return [
        `- ${change.path}: ${JSON.stringify(change.before)}`,
        `+ ${change.path}: ${JSON.stringify(change.after)}`,
      ];
  }
}
