// The `holdfast` command as it is on a node: the agent's own commands and nothing of the server. This is
// where the bundle begins that is shipped to other machines (scripts/agent-archive/), so that whatever says
// "run `holdfast agent diagnose`" is right there too.

const installed = `
Of this installation, as root:
  upgrade --file …   to another version; \`holdfast node release\` on the server prints a line that downloads it
  rollback           to the version before
  uninstall          everything; --keep-state leaves the node's identity`;

const args = process.argv.slice(2);

if (args.join(" ") === "agent run") {
  const { runAgent } = await import("./run.ts");
  await runAgent();
} else {
  const [{ Command, CommanderError }, { agentCommand }, { exitCodes, reportFailure }, { agentVersion }] =
    await Promise.all([
      import("commander"),
      import("./agent.ts"),
      import("../../failure.ts"),
      import("@holdfast/node-agent/version"),
    ]);
  const json = args.includes("--json");
  const program = new Command("holdfast")
    .description("The agent of this node. What concerns the server is asked where the server runs.")
    .version(agentVersion)
    .addCommand(agentCommand().addHelpText("after", installed))
    .showHelpAfterError("Run `holdfast agent --help` to see what there is.");
  for (const command of [program, ...program.commands, ...program.commands.flatMap((one) => one.commands)]) {
    command.exitOverride();
  }
  try {
    await program.parseAsync(args, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) process.exitCode = reportFailure(error, { json });
    else if (error.exitCode !== 0) process.exitCode = exitCodes.usage;
  }
}
