// holdfast terminal: a shell on a node in this terminal, and the list of those that are open.

import { closeTerminal, listTerminals, TerminalState } from "@holdfast/contracts/endpoints/terminals";
import { Command, Option } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { findAllocation } from "../../client/find-allocation.ts";
import { findNode } from "../../client/find-node.ts";
import { localTime, nextPage, printResult, table } from "../../output.ts";
import { wholeNumber } from "../options.ts";
import { attach } from "./attach.ts";
import { describeTerminal, placeOf, stateOf } from "./describe.ts";
import { escapeHelp } from "./escapes.ts";

type ListOptions = ServerOptions & {
  allocation?: string;
  node?: string;
  state?: TerminalState;
  correlation?: string;
  limit: number;
  cursor?: string;
};

export function terminalCommand(): Command {
  const terminal = new Command("terminal")
    .description("a shell on a node, in this terminal")
    .usage("<allocation> [options]\n       holdfast terminal list|close [options]")
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
  withServerOptions(terminal.command("list"))
    .description("list terminals, newest first")
    .option("--allocation <id or user@node>", "only of this allocation")
    .option("--node <id or name>", "only on this node")
    .addOption(new Option("--state <state>").choices(TerminalState.options))
    .option(
      "--correlation <id>",
      "only the terminal with this correlation id, as an error names it, with its details",
    )
    .option("--limit <count>", "1 to 200", wholeNumber({ min: 1, max: 200 }), 50)
    .option("--cursor <cursor>", "next_cursor of the previous page")
    .action(list);
  withServerOptions(terminal.command("close"))
    .description("end a terminal and its shell")
    .argument("<id>")
    .action(async (id: string, options: ServerOptions) => {
      const client = await connect(options);
      const closed = await client(closeTerminal, { params: { terminal_id: id } });
      printResult(options, closed, () => `Terminal ${closed.id} is ${closed.state}.`);
    });
  return terminal;
}

async function list(options: ListOptions): Promise<void> {
  const client = await connect(options);
  const allocation =
    options.allocation === undefined ? undefined : await findAllocation(client, options.allocation);
  const node = options.node === undefined ? undefined : await findNode(client, options.node);
  const { state, correlation: correlation_id, limit, cursor } = options;
  const query = { allocation_id: allocation?.id, node_id: node?.id, state, correlation_id, limit, cursor };
  printResult(options, await client(listTerminals, { query }), ({ items, next_cursor }) => {
    if (items.length === 0) return "No terminal matches.";
    if (correlation_id !== undefined) return items.map(describeTerminal).join("\n\n");
    const rows = table(items, [
      { title: "id", of: (row) => row.id },
      { title: "state", of: stateOf },
      { title: "failed at, owner", of: placeOf },
      { title: "opened by", of: (row) => row.opened_by },
      { title: "since", of: (row) => localTime(row.closed_at ?? row.created_at) },
      { title: "allocation", of: (row) => row.allocation_id },
      { title: "correlation id", of: (row) => row.correlation_id },
    ]);
    return rows + nextPage(items, next_cursor);
  });
}
