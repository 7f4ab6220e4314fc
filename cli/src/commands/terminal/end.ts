// holdfast terminal end: says that a terminal ended only after its gateway has confirmed it.

import type { Client } from "@holdfast/contracts/client";
import { closeTerminal, getTerminal, type TerminalSession } from "@holdfast/contracts/endpoints/terminals";
import type { Command } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { Refusal } from "../../failure.ts";
import { printResult } from "../../output.ts";

type EndOptions = ServerOptions & { wait: boolean };

/** A gateway that is connected confirms at once; one that was restarted needs a few seconds. */
const CONFIRMED_WITHIN_SECONDS = 10;

export function addEnd(terminal: Command): void {
  withServerOptions(terminal.command("end").alias("close"))
    .description("end a terminal, its shell and what runs in it")
    .argument("<id>", "`holdfast terminal list` shows it")
    .option("--no-wait", "only ask for it")
    .action(end);
}

async function end(id: string, options: EndOptions): Promise<void> {
  const client = await connect(options);
  const before = await client(getTerminal, { params: { terminal_id: id } });
  if (hasEnded(before)) return printResult(options, before, () => `Terminal ${nameOf(before)} had already ended.`);
  const asked = await client(closeTerminal, { params: { terminal_id: id } });
  if (!options.wait && !hasEnded(asked))
    return printResult(options, asked, () => `Terminal ${nameOf(asked)} was asked to end.`);
  const after = hasEnded(asked) ? asked : await confirmed(client, id);
  if (!hasEnded(after)) throw unconfirmed(after);
  printResult(options, after, () => `Terminal ${nameOf(after)} ended.`);
}

function confirmed(client: Client, id: string): Promise<TerminalSession> {
  return client(getTerminal, {
    params: { terminal_id: id },
    query: { wait_seconds: CONFIRMED_WITHIN_SECONDS },
  });
}

function unconfirmed(terminal: TerminalSession): Refusal {
  return new Refusal("terminal_end_unconfirmed", {
    message: `Terminal ${nameOf(terminal)} was asked to end, but no gateway confirmed it within ${CONFIRMED_WITHIN_SECONDS} s.`,
    nextStep:
      "It ends when its gateway is connected again. `holdfast terminal list` shows whether it is still open.",
    details: { terminal: terminal.id, state: terminal.state },
  });
}

function hasEnded({ closed_at }: TerminalSession): boolean {
  return closed_at !== null;
}

function nameOf({ id, username, node_name }: TerminalSession): string {
  return `${id} (${username}@${node_name})`;
}
