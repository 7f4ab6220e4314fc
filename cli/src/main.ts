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
    summary: "stop everything that `up` runs",
    load: async () => (await import("./commands/down.ts")).downCommand(),
  },
  {
    name: "status",
    summary: "show the state of each process",
    load: async () => (await import("./commands/status.ts")).statusCommand(),
  },
  {
    name: "login",
    summary: "sign in to a server from this machine",
    load: async () => (await import("./commands/login.ts")).loginCommand(),
  },
  {
    name: "logout",
    summary: "sign out and revoke the token",
    load: async () => (await import("./commands/logout.ts")).logoutCommand(),
  },
  {
    name: "session",
    summary: "browser sessions: list and end them",
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
    summary: "nodes: enroll, list, drain, quarantine, retire",
    load: async () => (await import("./commands/node/node.ts")).nodeCommand(),
  },
  {
    name: "fleet",
    summary: "all nodes at once: what is wrong, and a forecast",
    load: async () => (await import("./commands/fleet/fleet.ts")).fleetCommand(),
  },
  {
    name: "incident",
    summary: "what was wrong with nodes, and when",
    load: async () => (await import("./commands/incident/incident.ts")).incidentCommand(),
  },
  {
    name: "notify",
    summary: "messages about incidents to webhooks and by mail",
    load: async () => (await import("./commands/notify/notify.ts")).notifyCommand(),
  },
  {
    name: "policy",
    summary: "limits of the platform that change without a restart",
    load: async () => (await import("./commands/policy/policy.ts")).policyCommand(),
  },
  {
    name: "trace",
    summary: "the whole story behind an id",
    load: async () => (await import("./commands/trace/trace.ts")).traceCommand(),
  },
  {
    name: "logs",
    summary: "log lines of all processes, by an id in them",
    load: async () => (await import("./commands/logs/logs.ts")).logsCommand(),
  },
  {
    name: "evidence",
    summary: "signed bundles of everything about a node, an allocation, an incident or an id",
    load: async () => (await import("./commands/evidence/evidence.ts")).evidenceCommand(),
  },
  {
    name: "preflight",
    summary: "check a node and a terminal on it, hop by hop",
    load: async () => (await import("./commands/preflight/preflight.ts")).preflightCommand(),
  },
  {
    name: "task",
    summary: "run and inspect tasks on nodes",
    load: async () => (await import("./commands/task/task.ts")).taskCommand(),
  },
  {
    name: "execution",
    summary: "steps that were dispatched to agents",
    load: async () => (await import("./commands/execution/execution.ts")).executionCommand(),
  },
  {
    name: "workflow",
    summary: "workflows: apply, publish and check documents",
    load: async () => (await import("./commands/workflow/workflow.ts")).workflowCommand(),
  },
  {
    name: "connector",
    summary: "connectors of workflows: list, show and try them",
    load: async () => (await import("./commands/connector/connector.ts")).connectorCommand(),
  },
  {
    name: "run",
    summary: "runs of workflows",
    load: async () => (await import("./commands/run/run.ts")).runCommand(),
  },
  {
    name: "lease",
    summary: "VMs on hosts",
    load: async () => (await import("./commands/lease/lease.ts")).leaseCommand(),
  },
  {
    name: "vm",
    summary: "consoles of VMs, and commands in fresh ones",
    load: async () => (await import("./commands/vm/vm.ts")).vmCommand(),
  },
  {
    name: "jenkins",
    summary: "Jenkins controllers whose builds get VMs",
    load: async () => (await import("./commands/jenkins/jenkins.ts")).jenkinsCommand(),
  },
  {
    name: "host",
    summary: "nodes that run VMs",
    load: async () => (await import("./commands/host/host.ts")).hostCommand(),
  },
  {
    name: "image",
    summary: "base images of VMs",
    load: async () => (await import("./commands/image/image.ts")).imageCommand(),
  },
  {
    name: "allocation",
    summary: "OS users on nodes",
    load: async () => (await import("./commands/allocation/allocation.ts")).allocationCommand(),
  },
  {
    name: "quota",
    summary: "allocation limits",
    load: async () => (await import("./commands/quota/quota.ts")).quotaCommand(),
  },
  {
    name: "terminal",
    summary: "a shell on a node",
    load: async () => (await import("./commands/terminal/terminal.ts")).terminalCommand(),
  },
  {
    name: "secret",
    summary: "secrets that steps may get, and the key that encrypts them",
    load: async () => (await import("./commands/secret/secret.ts")).secretCommand(),
  },
  {
    name: "key",
    summary: "task signing keys",
    load: async () => (await import("./commands/key/key.ts")).keyCommand(),
  },
  {
    name: "audit",
    summary: "audit events",
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
    summary: "renew the certificates of an ingress proxy",
    load: async () => (await import("./commands/ingress.ts")).ingressCommand(),
  },
  {
    name: "agent",
    summary: "the agent on this machine, and agents that run steps",
    load: async () => (await import("./commands/agent/paired.ts")).agentCommandWithPaired(),
  },
  {
    name: "sim",
    summary: "run simulated nodes",
    load: async () => (await import("./commands/sim/sim.ts")).simCommand(),
  },
  {
    name: "migrate",
    summary: "apply database migrations",
    load: async () => (await import("./commands/migrate.ts")).migrateCommand(),
  },
];

const exitCodeHelp = `
Exit codes: 0 success · 1 rejected or failed · 2 invalid usage or setting · 3 server unreachable · 130 interrupted · 141 output closed`;

export async function main(args: string[]): Promise<void> {
  const json = args.includes("--json");
  handleClosedOutput(args[0], { json });
  try {
    const called = args[0] === "help" ? args[1] : args[0];
    const program = await buildProgram((name) => name === called, { json });
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

/** `isNeeded`: whether the code of this command is loaded. */
export async function buildProgram(
  isNeeded: (name: string) => boolean,
  options: { json: boolean },
): Promise<Command> {
  const { version } = await import("@holdfast/service/version");
  const program = new Command("holdfast")
    .description("Runs fleets of machines that you cannot always reach.")
    .version(version)
    .addHelpText("after", exitCodeHelp)
    .showHelpAfterError("Run `holdfast --help` for the list of commands.");
  for (const { name, summary, load } of commands) {
    program.addCommand(isNeeded(name) ? await load() : new Command(name).description(summary));
  }
  throwInsteadOfExit(program, options);
  return program;
}

/** Commander prints usage errors for people; `reportFailure` prints them for scripts. */
function throwInsteadOfExit(command: Command, options: { json: boolean }): void {
  command.exitOverride();
  if (options.json) command.configureOutput({ writeErr: () => undefined });
  for (const child of command.commands) throwInsteadOfExit(child, options);
}
