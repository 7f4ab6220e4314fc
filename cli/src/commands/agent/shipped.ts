// The `holdfast` command as it is on a node: the agent's own commands and nothing of the server. This is
// where the bundle begins that is shipped to other machines (scripts/agent-archive/), so that whatever says
// "run `holdfast agent diagnose`" is right there too.

import type { Command as CommandType } from "commander";

const installed = `
Managing this installation, as root:
  upgrade --file …   install another version; on the server, \`holdfast node release\` prints a command that downloads it
  rollback           return to the previous version
  uninstall          remove everything; --keep-state keeps the node's identity`;

const args = process.argv.slice(2);

if (args.join(" ") === "agent run") {
  const { runAgent } = await import("./run.ts");
  await runAgent();
} else {
  const [
    { Command, CommanderError },
    { agentCommand },
    { withHostCommands },
    { exitCodes, reportFailure },
    { agentVersion },
  ] = await Promise.all([
    import("commander"),
    import("./agent.ts"),
    import("../image/on-host.ts"),
    import("../../failure.ts"),
    import("@holdfast/node-agent/version"),
  ]);
  const json = args.includes("--json");
  const image = withHostCommands(new Command("image").description("base images of VMs on this host"));
  const program = new Command("holdfast")
    .description("The agent of this node. Run server commands on the server.")
    .version(agentVersion)
    .addCommand(agentCommand().addHelpText("after", installed))
    .addCommand(image)
    .showHelpAfterError("Run `holdfast agent --help` for the list of commands.");
  const withChildren = (command: CommandType): CommandType[] => [
    command,
    ...command.commands.flatMap(withChildren),
  ];
  for (const command of withChildren(program)) command.exitOverride();
  try {
    await program.parseAsync(args, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) process.exitCode = reportFailure(error, { json });
    else if (error.exitCode !== 0) process.exitCode = exitCodes.usage;
  }
}
