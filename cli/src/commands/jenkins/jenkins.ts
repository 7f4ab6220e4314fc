// holdfast jenkins: controllers whose queued builds get a VM each.

import type { Client } from "@holdfast/contracts/client";
import {
  addJenkinsController,
  checkJenkinsController,
  disableJenkinsController,
  enableJenkinsController,
  getJenkinsController,
  type JenkinsController,
  type JenkinsLabelPolicy,
  listJenkinsControllers,
  removeJenkinsController,
  setJenkinsToken,
} from "@holdfast/contracts/endpoints/jenkins";
import { UsageError } from "@holdfast/kit/settings";
import { Command } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { printResult, table } from "../../output.ts";
import { ask, readAllInput } from "../../prompt.ts";
import { wholeNumber } from "../options.ts";
import { controllerRows, describeCheck, describeController } from "./describe.ts";

type AddOptions = ServerOptions & {
  url: string;
  user: string;
  label: JenkinsLabelPolicy[];
  max?: number;
  burst?: number;
  cooldown?: number;
  connectWithin?: number;
};

export function jenkinsCommand(): Command {
  const jenkins = new Command("jenkins").description("Jenkins controllers whose queued builds get a VM each");
  withServerOptions(jenkins.command("add"))
    .description("add a controller; its API token is read from standard input or asked for")
    .argument("<name>", "2 to 40 lower-case letters, digits and hyphens")
    .requiredOption("--url <url>", "as browsers use it, such as https://ci.example.com/jenkins/")
    .requiredOption("--user <user>", "the user on the controller that the API token belongs to")
    .requiredOption(
      "--label <labels=lease-label>",
      "Jenkins labels, separated by commas, and the label of leases that their builds get; repeat it for more",
      collectPolicies,
    )
    .option("--max <count>", "how many VMs its builds have at a time (20)", wholeNumber({ min: 0, max: 10_000 }))
    .option(
      "--burst <count>",
      "how many VMs are requested within one cooldown (5)",
      wholeNumber({ min: 1, max: 1000 }),
    )
    .option("--cooldown <seconds>", "also the pause after a failed VM (10)", wholeNumber({ min: 1, max: 3600 }))
    .option(
      "--connect-within <seconds>",
      "for the agent of a started VM (240)",
      wholeNumber({ min: 10, max: 3600 }),
    )
    .action(add);
  withServerOptions(jenkins.command("list"))
    .description("list controllers")
    .action(async (options: ServerOptions) => {
      const client = await connect(options);
      printResult(options, await client(listJenkinsControllers, {}), ({ items }) =>
        items.length === 0
          ? "No controllers. Add one: holdfast jenkins add <name> --url <url> --user <user> --label <labels=lease-label>"
          : table(items, controllerRows),
      );
    });
  withServerOptions(jenkins.command("show"))
    .description("show a controller with its queue and its builds")
    .argument("<name>", "or its id")
    .action(async (which: string, options: ServerOptions) => {
      const client = await connect(options);
      const { id } = await find(client, which);
      printResult(
        options,
        await client(getJenkinsController, { params: { controller_id: id } }),
        describeController,
      );
    });
  withServerOptions(jenkins.command("check"))
    .description("check now whether a controller can be used; changes nothing there")
    .argument("<name>", "or its id")
    .action(async (which: string, options: ServerOptions) => {
      const client = await connect(options);
      const { id, name } = await find(client, which);
      const result = await client(checkJenkinsController, { params: { controller_id: id } });
      printResult(options, result, (one) => describeCheck(name, one));
      if (!result.usable) process.exitCode = 1;
    });
  for (const [verb, endpoint, description] of [
    ["enable", enableJenkinsController, "serve a controller's queue again"],
    [
      "disable",
      disableJenkinsController,
      "request no more VMs for a controller's queue; builds with a VM keep it",
    ],
  ] as const) {
    withServerOptions(jenkins.command(verb))
      .description(description)
      .argument("<name>", "or its id")
      .action(async (which: string, options: ServerOptions) => {
        const client = await connect(options);
        const { id, name } = await find(client, which);
        const changed = await client(endpoint, { params: { controller_id: id } });
        printResult(options, changed, () => `Controller ${name} ${verb}d.`);
      });
  }
  withServerOptions(jenkins.command("set-token"))
    .description("replace a controller's API token; it is read from standard input or asked for")
    .argument("<name>", "or its id")
    .action(async (which: string, options: ServerOptions) => {
      const client = await connect(options);
      const { id, name, user } = await find(client, which);
      const body = { api_token: await readToken(user) };
      const changed = await client(setJenkinsToken, { params: { controller_id: id }, body });
      printResult(
        options,
        changed,
        () => `API token of ${name} replaced. Check it: holdfast jenkins check ${name}`,
      );
    });
  withServerOptions(jenkins.command("remove"))
    .description("remove a controller")
    .argument("<name>", "or its id")
    .option("--force", "also while builds have VMs: these are terminated, and their nodes stay on the controller")
    .action(async (which: string, options: ServerOptions & { force?: boolean }) => {
      const client = await connect(options);
      const { id, name } = await find(client, which);
      const force = options.force ? "true" : "false";
      await client(removeJenkinsController, { params: { controller_id: id }, query: { force } });
      printResult(options, { id, name }, () => `Controller ${name} removed.`);
    });
  return jenkins;
}

async function add(name: string, options: AddOptions): Promise<void> {
  const client = await connect(options);
  const { url, user, label: labels, max: max_leases, burst, cooldown, connectWithin } = options;
  const body = {
    ...{ name, url, user, labels, api_token: await readToken(user) },
    ...{ max_leases, burst, cooldown_seconds: cooldown, connect_seconds: connectWithin },
  };
  const added = await client(addJenkinsController, { body });
  printResult(options, added, () => `Controller ${name} added. Check it: holdfast jenkins check ${name}`);
}

/** Never an argument, which other users of this machine could read. */
async function readToken(user: string): Promise<string> {
  const token = process.stdin.isTTY
    ? await ask(`API token of ${user} (not shown)`, { secret: true, instead: "a pipe" })
    : await readAllInput();
  if (token === "") throw new UsageError("No API token was given: standard input was empty.");
  return token;
}

function collectPolicies(text: string, before: JenkinsLabelPolicy[] = []): JenkinsLabelPolicy[] {
  const [, labels = "", lease_label = ""] = /^(.+)=([^=]+)$/.exec(text) ?? [];
  if (labels === "")
    throw new UsageError(`${text} is not of the form labels=lease-label, such as linux,docker=small.`);
  return [
    ...before,
    { jenkins_labels: labels.split(",").map((one) => one.trim()), lease_label: lease_label.trim() },
  ];
}

async function find(client: Client, which: string): Promise<JenkinsController> {
  const { items } = await client(listJenkinsControllers, {});
  const found = items.find(({ id, name }) => id === which || name === which);
  if (!found) throw new UsageError(`No controller ${which}. \`holdfast jenkins list\` lists them.`);
  return found;
}
