// holdfast workflow trigger: the schedules and webhooks of the published version.

import type { Client } from "@holdfast/contracts/client";
import {
  HOOK_TOLERANCE_SECONDS,
  hookHeaders,
  rotateWorkflowTrigger,
  setWorkflowTrigger,
} from "@holdfast/contracts/endpoints/workflow-triggers";
import { getWorkflow, type WorkflowTrigger } from "@holdfast/contracts/endpoints/workflows";
import { UsageError } from "@holdfast/kit/settings";
import type { Command } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { localTime, printResult } from "../../output.ts";
import { findWorkflow } from "./find.ts";

export function addTrigger(workflow: Command): void {
  const trigger = workflow.command("trigger").description("schedules and webhooks that start runs");
  addShow(trigger);
  addSet(trigger, "enable", true);
  addSet(trigger, "disable", false);
  addRotate(trigger);
}

function addShow(trigger: Command): void {
  withServerOptions(trigger.command("show"))
    .description(
      "show the triggers of a workflow, with the next time of each schedule and how to call each webhook",
    )
    .argument("<workflow>")
    .action(async (name: string, options: ServerOptions) => {
      const client = await connect(options);
      const triggers = await triggersOf(client, name);
      printResult(options, { items: triggers }, () =>
        triggers.length === 0
          ? "The published version has no schedule and no webhook. Add them to `triggers` of the document."
          : triggers.flatMap((one) => [triggerText(one), ...howToCall(name, one)]).join("\n"),
      );
    });
}

function addSet(trigger: Command, verb: "enable" | "disable", enabled: boolean): void {
  withServerOptions(trigger.command(verb))
    .description(`${verb} a schedule or a webhook`)
    .argument("<workflow>")
    .argument("[trigger id]", "needed if the workflow has several")
    .action(async (name: string, id: string | undefined, options: ServerOptions) => {
      const client = await connect(options);
      const { id: trigger_id } = choose(await triggersOf(client, name), { name, id });
      const set = await client(setWorkflowTrigger, { params: { trigger_id }, body: { enabled } });
      printResult(options, set, triggerText);
    });
}

function addRotate(trigger: Command): void {
  withServerOptions(trigger.command("rotate"))
    .description("create the token of a webhook; an earlier one is no longer accepted")
    .argument("<workflow>")
    .argument("[trigger id]", "needed if the workflow has several webhooks")
    .action(async (name: string, id: string | undefined, options: ServerOptions) => {
      const client = await connect(options);
      const webhooks = (await triggersOf(client, name)).filter(({ type }) => type === "webhook");
      const { id: trigger_id } = choose(webhooks, { name, id });
      const rotated = await client(rotateWorkflowTrigger, { params: { trigger_id } });
      printResult(options, rotated, ({ token, url }) =>
        [
          `Token: ${token}`,
          `URL with the token as its password: ${url}`,
          "Both are shown once. An earlier token is no longer accepted.",
        ].join("\n"),
      );
    });
}

async function triggersOf(client: Client, name: string): Promise<WorkflowTrigger[]> {
  const { id: workflow_id } = await findWorkflow(client, name);
  return (await client(getWorkflow, { params: { workflow_id } })).triggers;
}

function choose(all: readonly WorkflowTrigger[], { name, id }: { name: string; id: string | undefined }) {
  const found = id === undefined && all.length === 1 ? all[0] : all.find((one) => one.id === id);
  if (found) return found;
  throw new UsageError(
    `${id === undefined ? `${name} has ${all.length} triggers of this kind` : `${name} has no trigger ${id}`}. ` +
      `List them with \`holdfast workflow trigger show ${name}\`.`,
  );
}

export function triggerText(trigger: WorkflowTrigger): string {
  const { id, schedule, timezone, missed, next_at, path, last_at } = trigger;
  const state = trigger.enabled ? "" : " (disabled)";
  const last = last_at === null ? "" : `, last started a run at ${localTime(last_at)}`;
  if (trigger.type === "webhook") return `webhook ${path}${state}${last}`;
  const next = next_at === null ? "no next time" : `next at ${localTime(next_at)}`;
  return `schedule "${schedule}" (${timezone}), missed: ${missed}, ${next}${state}${last}, id ${id}`;
}

function howToCall(name: string, { type, secret, token_created_at: created }: WorkflowTrigger): string[] {
  if (type !== "webhook") return [];
  if (secret !== null) {
    return [
      `  signed with the secret ${secret}: ${hookHeaders.signature} is v1= and the hexadecimal HMAC-SHA256 of <timestamp>.<delivery>.<body>,`,
      `  with ${hookHeaders.timestamp} (seconds since 1970, at most ${HOOK_TOLERANCE_SECONDS} off) and ${hookHeaders.delivery} (an id of yours)`,
    ];
  }
  if (created === null) {
    return [`  has no token yet and accepts nothing. Create one: \`holdfast workflow trigger rotate ${name}\``];
  }
  return [
    `  Authorization: Bearer <token>, created at ${localTime(created)}; ${hookHeaders.delivery} makes repeats safe`,
  ];
}
