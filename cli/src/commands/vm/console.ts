// holdfast vm console: the local terminal at the serial console of a VM.

import { getLease } from "@holdfast/contracts/endpoints/leases";
import { adviceFor } from "@holdfast/contracts/reasons/advice";
import type { Command } from "commander";
import { clientOf, findServerAndOrg, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { runTerminal } from "../terminal/attach.ts";
import { commandEnvironment } from "../terminal/environment.ts";
import { escapeHelp } from "../terminal/escapes.ts";
import { TerminalFailure } from "../terminal/failure.ts";

type ConsoleOptions = ServerOptions & { session?: string };

export function addConsole(vm: Command): void {
  withServerOptions(vm.command("console"))
    .description("the serial console of a VM, in this terminal")
    .argument("<lease>", "id; `holdfast lease list --live` shows it")
    .option("--session <id>", "a console of yours that is open already")
    .addHelpText("after", () => `\nKeys:\n${escapeHelp.map((line) => `  ${line}`).join("\n")}`)
    .action(openConsole);
}

async function openConsole(leaseId: string, options: ConsoleOptions): Promise<void> {
  const server = await findServerAndOrg(options);
  const client = clientOf(server);
  const { id, image_id, host_name } = await client(getLease, { params: { lease_id: leaseId } });
  await runTerminal({
    environment: commandEnvironment(client, server, { leaseId: id }),
    shell: options.session,
    where: `the console of ${image_id}${host_name === null ? "" : ` on ${host_name}`}`,
    returnBy: `holdfast vm console ${id}`,
    advise: (error) =>
      error instanceof TerminalFailure && host_name !== null
        ? error.advising(adviceFor(host_name, error.nextStep))
        : error,
  });
}
