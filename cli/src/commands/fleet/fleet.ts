// holdfast fleet: all nodes of an organization in a few lines.

import { type Fleet, fleetStates, getFleet } from "@holdfast/contracts/endpoints/fleet";
import { fleetStateTitles } from "@holdfast/contracts/words/state-titles";
import { Command } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { printResult, table } from "../../output.ts";
import { addForecast } from "./forecast.ts";

export function fleetCommand(): Command {
  const fleet = new Command("fleet").description("all nodes at once");
  withServerOptions(fleet.command("show", { isDefault: true }))
    .description("count nodes by state, list what is wrong, and say whether the control plane is suspected")
    .action(async (options: ServerOptions) => {
      const client = await connect(options);
      printResult(options, await client(getFleet, {}), describeFleet);
    });
  addForecast(fleet);
  return fleet;
}

/** What the classifier found that nodes with this trouble have in common, and how to see all of it. */
export function commonCauses({ common }: Pick<Fleet["troubles"][number], "common">): string[] {
  return common.map(({ sentence, incident_id }) => `${sentence} See \`holdfast incident show ${incident_id}\`.`);
}

/** Exported for its test. */
export function describeFleet({ total, not_fine, states, troubles, brake, own_side }: Fleet): string {
  if (total === 0) return "No nodes.";
  const nodes = total === 1 ? "1 node" : `${total} nodes`;
  const counted = fleetStates
    .filter((state) => states[state] > 0)
    .map((state) => `${states[state]} ${fleetStateTitles[state].title.toLowerCase()}`);
  const attention = not_fine === 0 ? "" : ` ${not_fine} ${not_fine === 1 ? "needs" : "need"} attention.`;
  return [
    `${nodes}: ${counted.join(", ")}.${attention}`,
    ...(brake ? [`Brake on: ${brake.message}`] : []),
    ...(own_side ? [own_side.message, `  next  ${own_side.next_step}`] : []),
    ...(troubles.length === 0
      ? []
      : [
          "",
          table(troubles, [
            { title: "reason", of: ({ title, code }) => `${title} (${code})` },
            { title: "nodes", of: ({ count }) => String(count) },
            { title: "severity", of: ({ severity }) => severity },
            { title: "next", of: ({ next_step }) => next_step },
          ]),
          ...troubles.flatMap((trouble) => commonCauses(trouble).map((line) => `${trouble.title}: ${line}`)),
        ]),
  ].join("\n");
}
