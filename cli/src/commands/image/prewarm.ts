// holdfast image prewarm: lets hosts fetch an image before a lease needs it, and waits until they have it.

import type { Client } from "@holdfast/contracts/client";
import { prewarmImage } from "@holdfast/contracts/endpoints/images";
import { getTask, terminalStatuses } from "@holdfast/contracts/endpoints/tasks";
import type { Command } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { findNode } from "../../client/find-node.ts";
import { Refusal } from "../../failure.ts";
import { printResult } from "../../output.ts";

type Outcome = { host: string; state: "ready" | "fetching" | "refused" | "failed"; detail: string | null };
type Options = ServerOptions & { host?: string[]; wait: boolean };

export function addPrewarm(image: Command): void {
  withServerOptions(image.command("prewarm"))
    .description("let hosts fetch an image before a lease needs it, and wait until they have it")
    .argument("<id>")
    .option("--host <host...>", "ids or names; by default all that are enabled")
    .option("--no-wait", "do not wait")
    .action(async (id: string, options: Options) => {
      const client = await connect(options);
      const host_ids = options.host && (await Promise.all(options.host.map((one) => idOf(client, one))));
      const { hosts } = await client(prewarmImage, { params: { image_id: id }, body: { host_ids } });
      const outcomes = await Promise.all(
        hosts.map(async ({ name, outcome: state, task_id, message }): Promise<Outcome> => {
          if (state !== "fetching" || task_id === null || !options.wait)
            return { host: name, state, detail: message };
          return { host: name, ...(await endOf(client, task_id)) };
        }),
      );
      printResult(options, { image_id: id, hosts: outcomes }, () => describe(id, outcomes));
      const failed = outcomes.filter(({ state }) => state === "refused" || state === "failed");
      if (failed.length > 0)
        throw new Refusal("image_not_prewarmed", {
          message: `${failed.length} of ${outcomes.length} hosts do not have the image ${id}.`,
          nextStep: "Each host's line says what to do.",
        });
    });
}

const idOf = async (client: Client, wanted: string) => (await findNode(client, wanted)).id;

async function endOf(client: Client, taskId: string): Promise<Pick<Outcome, "state" | "detail">> {
  for (let revision: number | undefined; ; ) {
    const task = await client(getTask, { params: { task_id: taskId }, query: { wait_seconds: 30, revision } });
    revision = task.revision;
    if (!terminalStatuses.has(task.status)) continue;
    if (task.status === "completed") return { state: "ready", detail: null };
    const { message, next_step } = task.failure ?? { message: `The task ended: ${task.status}.`, next_step: "" };
    return { state: "failed", detail: `${message} ${next_step}`.trim() };
  }
}

const words = {
  ready: "has it",
  fetching: "is fetching it",
  refused: "cannot fetch it",
  failed: "did not fetch it",
};

function describe(id: string, outcomes: readonly Outcome[]): string {
  if (outcomes.length === 0) return "No VM host is enabled. `holdfast host list` lists the hosts.";
  const lines = outcomes.map(
    ({ host, state, detail }) => `  ${host} ${words[state]}${detail ? `: ${detail}` : "."}`,
  );
  return [`Image ${id}:`, ...lines].join("\n");
}
