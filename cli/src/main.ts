// The `holdfast` command. Each subcommand is loaded only when it is called: the command must feel
// instant, and `holdfast agent` on a small host should not carry the control plane along.

import { UsageError } from "@holdfast/kit/settings";
import { Command, CommanderError } from "commander";
import { handleClosedOutput } from "./closed-output.ts";
import { exitCodes, reportFailure } from "./failure.ts";

type CommandLoader = { name: string; summary: string; load: () => Promise<Command> };

const commands: CommandLoader[] = [
  {
    name: "up",
    summary: "run everything on this machine",
    load: async () => (await import("./commands/up.ts")).upCommand(),
  },
  {
    name: "down",
    summary: "stop what `up` runs",
    load: async () => (await import("./commands/down.ts")).downCommand(),
  },
  {
    name: "status",
    summary: "show how the parts are",
    load: async () => (await import("./commands/status.ts")).statusCommand(),
  },
  {
    name: "login",
    summary: "sign in to a server from this machine",
    load: async () => (await import("./commands/login.ts")).loginCommand(),
  },
  {
    name: "logout",
    summary: "forget the sign-in and revoke its token",
    load: async () => (await import("./commands/logout.ts")).logoutCommand(),
  },
  {
    name: "session",
    summary: "where you are signed in, and signing out",
    load: async () => (await import("./commands/session/session.ts")).sessionCommand(),
  },
  {
    name: "admin",
    summary: "one-time links for administrators",
    load: async () => (await import("./commands/admin/admin.ts")).adminCommand(),
  },
  {
    name: "org",
    summary: "organizations and their members",
    load: async () => (await import("./commands/org/org.ts")).orgCommand(),
  },
  {
    name: "token",
    summary: "API tokens",
    load: async () => (await import("./commands/token/token.ts")).tokenCommand(),
  },
  {
    name: "node",
    summary: "machines, and how they join",
    load: async () => (await import("./commands/node/node.ts")).nodeCommand(),
  },
  {
    name: "task",
    summary: "run something on a node",
    load: async () => (await import("./commands/task/task.ts")).taskCommand(),
  },
  {
    name: "allocation",
    summary: "users on nodes",
    load: async () => (await import("./commands/allocation/allocation.ts")).allocationCommand(),
  },
  {
    name: "quota",
    summary: "limits of allocations",
    load: async () => (await import("./commands/quota/quota.ts")).quotaCommand(),
  },
  {
    name: "terminal",
    summary: "a shell on a node",
    load: async () => (await import("./commands/terminal/terminal.ts")).terminalCommand(),
  },
  {
    name: "key",
    summary: "keys that tasks are signed with",
    load: async () => (await import("./commands/key/key.ts")).keyCommand(),
  },
  {
    name: "audit",
    summary: "who did what",
    load: async () => (await import("./commands/audit/audit.ts")).auditCommand(),
  },
  {
    name: "api",
    summary: "run one api process",
    load: async () => (await import("./commands/processes.ts")).apiCommand(),
  },
  {
    name: "gateway",
    summary: "run one gateway process",
    load: async () => (await import("./commands/processes.ts")).gatewayCommand(),
  },
  {
    name: "worker",
    summary: "run one worker process",
    load: async () => (await import("./commands/processes.ts")).workerCommand(),
  },
  {
    name: "ingress",
    summary: "keep the certificates of a proxy in front",
    load: async () => (await import("./commands/ingress.ts")).ingressCommand(),
  },
  {
    name: "agent",
    summary: "make this machine a node, and run its agent",
    load: async () => (await import("./commands/agent/agent.ts")).agentCommand(),
  },
  {
    name: "sim",
    summary: "a fleet of simulated nodes to look at",
    load: async () => (await import("./commands/sim/sim.ts")).simCommand(),
  },
  {
    name: "migrate",
    summary: "bring a database's schema up to date",
    load: async () => (await import("./commands/migrate.ts")).migrateCommand(),
  },
];

const exitCodeHelp = `
Exit codes: 0 done · 1 refused or failed · 2 wrong usage or setting · 3 server not reachable · 130 interrupted · 141 output closed`;

export async function main(args: string[]): Promise<void> {
  const json = args.includes("--json");
  handleClosedOutput(args[0], { json });
  try {
    const program = await buildProgram(args[0] === "help" ? args[1] : args[0], { json });
    await program.parseAsync(args, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) process.exitCode = reportFailure(error, { json });
    else if (error.exitCode === 0) process.exitCode = exitCodes.done;
    else process.exitCode = json ? reportFailure(usageErrorOf(error), { json }) : exitCodes.usage;
  }
}

function usageErrorOf(error: CommanderError): UsageError {
  return new UsageError(error.message.replace(/^error: /, ""));
}

async function buildProgram(called: string | undefined, options: { json: boolean }): Promise<Command> {
  const { version } = await import("@holdfast/service/version");
  const program = new Command("holdfast")
    .description("Runs fleets of machines that you cannot always reach.")
    .version(version)
    .addHelpText("after", exitCodeHelp)
    .showHelpAfterError("Run `holdfast --help` to see what there is.");
  for (const { name, summary, load } of commands) {
    program.addCommand(name === called ? await load() : new Command(name).description(summary));
  }
  throwInsteadOfExit(program, options);
  return program;
}

/** Commander tells people itself what is wrong; what a script is told comes from `reportFailure`. */
function throwInsteadOfExit(command: Command, options: { json: boolean }): void {
  command.exitOverride();
  if (options.json) command.configureOutput({ writeErr: () => undefined });
  for (const child of command.commands) throwInsteadOfExit(child, options);
}
