// holdfast terminal: a shell on a node in this terminal, the list of those that are open, and how to end one.

import { Command } from "commander";
import { withServerOptions } from "../../client/connect.ts";
import { attach } from "./attach.ts";
import { addEnd } from "./end.ts";
import { escapeHelp } from "./escapes.ts";
import { addList } from "./list.ts";

export function terminalCommand(): Command {
  const terminal = new Command("terminal")
    .description("a shell on a node, in this terminal")
    .usage("<allocation> [options]\n       holdfast terminal list|end [options]")
    .addHelpText(
      "after",
      "\n`holdfast terminal attach --help` shows the options, and the keys while you are there.",
    );
  withServerOptions(terminal.command("attach", { isDefault: true }))
    .description("the same, by its whole name")
    .argument("<allocation>", "id, or user@node")
    .option("--session <id>", "a shell of yours that is open already")
    .addHelpText("after", () => `\nKeys:\n${escapeHelp.map((line) => `  ${line}`).join("\n")}`)
    .action(attach);
  addList(terminal);
  addEnd(terminal);
  return terminal;
}
