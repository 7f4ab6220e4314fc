// holdfast workflow list, show and delete.

import {
  deleteWorkflow,
  getWorkflow,
  getWorkflowVersion,
  listWorkflows,
  listWorkflowVersions,
  type Workflow,
} from "@holdfast/contracts/endpoints/workflows";
import { UsageError } from "@holdfast/kit/settings";
import type { Command } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { localTime, nextPage, printResult, table } from "../../output.ts";
import { agreed } from "../../prompt.ts";
import { findWorkflow } from "./find.ts";
import { triggerText } from "./trigger.ts";

export function addShow(workflow: Command): void {
  addList(workflow);
  addOne(workflow);
  addVersions(workflow);
  addDelete(workflow);
}

function addList(workflow: Command): void {
  withServerOptions(workflow.command("list"))
    .description("list workflows, newest first")
    .option("--cursor <cursor>", "where the next page begins")
    .action(async (options: ServerOptions & { cursor?: string }) => {
      const client = await connect(options);
      const page = await client(listWorkflows, { query: { cursor: options.cursor } });
      printResult(options, page, ({ items, next_cursor }) =>
        items.length === 0
          ? "No workflows yet. Create one: `holdfast workflow apply <file>`."
          : table(items, [
              { title: "name", of: (row) => row.name },
              { title: "published", of: publishedText },
              { title: "draft", of: draftText },
              { title: "changed", of: (row) => localTime(row.changed_at) },
              { title: "changed by", of: (row) => row.changed_by },
            ]) + nextPage(items, next_cursor),
      );
    });
}

type ShowOptions = ServerOptions & { draft?: boolean; number?: string };

function addOne(workflow: Command): void {
  withServerOptions(workflow.command("show"))
    .description("show a workflow; with --draft or --number only its document, as it was written")
    .argument("<name>")
    .option("--draft", "print the draft")
    .option("--number <version>", "print this published version")
    .action(async (wanted: string, options: ShowOptions) => {
      const client = await connect(options);
      const { id: workflow_id } = await findWorkflow(client, wanted);
      if (options.number !== undefined) {
        const number = Number(options.number);
        if (!Number.isInteger(number) || number < 1) {
          throw new UsageError(`--number is ${JSON.stringify(options.number)}; expected a version, such as 3.`);
        }
        const version = await client(getWorkflowVersion, { params: { workflow_id }, query: { number } });
        printResult(options, version, ({ source }) => source.trimEnd());
        return;
      }
      const shown = await client(getWorkflow, { params: { workflow_id } });
      printResult(options, shown, ({ source, problems, triggers, ...row }) =>
        options.draft
          ? source.trimEnd()
          : [
              `${row.name}: published ${publishedText(row)}, draft ${draftText(row)}`,
              `  draft revision ${row.revision}, changed by ${row.changed_by} at ${localTime(row.changed_at)}`,
              `  id ${row.id}`,
              ...triggers.map((trigger) => `  ${triggerText(trigger)}`),
              ...problems.map(({ line, column, message }) => `  problem at ${line}:${column}: ${message}`),
            ].join("\n"),
      );
    });
}

function addVersions(workflow: Command): void {
  withServerOptions(workflow.command("versions"))
    .description("list the published versions of a workflow, newest first")
    .argument("<name>")
    .option("--before <version>", "only versions below this one")
    .action(async (wanted: string, options: ServerOptions & { before?: string }) => {
      const client = await connect(options);
      const { id: workflow_id } = await findWorkflow(client, wanted);
      const query = options.before === undefined ? {} : { before: Number(options.before) };
      const result = await client(listWorkflowVersions, { params: { workflow_id }, query });
      printResult(options, result, ({ items }) =>
        items.length === 0
          ? `Nothing is published yet. Publish the draft: \`holdfast workflow publish ${wanted}\`.`
          : table(items, [
              { title: "version", of: (row) => String(row.version) },
              { title: "published", of: (row) => localTime(row.published_at) },
              { title: "published by", of: (row) => row.published_by },
            ]),
      );
    });
}

function addDelete(workflow: Command): void {
  withServerOptions(workflow.command("delete"))
    .description("delete a workflow; asks first")
    .argument("<name>")
    .option("--yes", "do not ask")
    .action(async (wanted: string, options: ServerOptions & { yes?: boolean }) => {
      const client = await connect(options);
      const { id: workflow_id } = await findWorkflow(client, wanted);
      if (!options.yes && !(await agreed(`Delete the workflow ${wanted}? This cannot be undone.`))) {
        throw new UsageError("Nothing was deleted.");
      }
      await client(deleteWorkflow, { params: { workflow_id } });
      printResult(options, { id: workflow_id, deleted: true }, () => `Workflow ${wanted} deleted.`);
    });
}

const publishedText = ({ published_version: version, published_at }: Workflow) =>
  version === null ? "never" : `version ${version} at ${localTime(published_at)}`;

const draftText = ({ draft_valid, changed_since_published }: Workflow) =>
  draft_valid ? (changed_since_published ? "not published" : "published") : "has problems";
