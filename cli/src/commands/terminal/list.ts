// holdfast terminal list: your own open terminals, which are those that count towards your limit; or all that you may
// see in the organization, ended ones too.

import type { Client } from "@holdfast/contracts/client";
import {
  listMyTerminals,
  listTerminals,
  type MyTerminal,
  type TerminalSession,
  TerminalState,
} from "@holdfast/contracts/endpoints/terminals";
import { UsageError } from "@holdfast/kit/settings";
import { type Command, Option } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { findAllocation } from "../../client/find-allocation.ts";
import { findNode } from "../../client/find-node.ts";
import { type Column, localTime, nextPage, printResult, span, table } from "../../output.ts";
import { wholeNumber } from "../options.ts";
import { describeTerminal, placeOf, stateOf } from "./describe.ts";

type ListOptions = ServerOptions & {
  all?: boolean;
  allocation?: string;
  node?: string;
  state?: TerminalState;
  correlation?: string;
  limit?: number;
  cursor?: string;
};

const DEFAULT_LIMIT = 50;

export function addList(terminal: Command): void {
  withServerOptions(terminal.command("list"))
    .description("list your open terminals, newest first")
    .option("--all", "all terminals you may see in the organization, ended ones too")
    .option("--allocation <id or user@node>", "only of this allocation")
    .option("--node <id or name>", "only on this node")
    .option("--correlation <id>", "the terminal with this correlation id, as an error names it, with its details")
    .addOption(new Option("--state <state>", "with --all").choices(TerminalState.options))
    .option("--limit <count>", "with --all: 1 to 200 (default: 50)", wholeNumber({ min: 1, max: 200 }))
    .option("--cursor <cursor>", "with --all: next_cursor of the previous page")
    .action(list);
}

async function list(options: ListOptions): Promise<void> {
  // One correlation id is looked for among all of them.
  const all = options.all === true || options.correlation !== undefined;
  for (const name of ["state", "limit", "cursor"] as const)
    if (!all && options[name] !== undefined)
      throw new UsageError(`--${name} needs --all; without it, all your open terminals are listed.`);
  const client = await connect(options);
  const [allocation, node] = [
    options.allocation === undefined ? undefined : await findAllocation(client, options.allocation),
    options.node === undefined ? undefined : await findNode(client, options.node),
  ];
  const only = { allocation_id: allocation?.id, node_id: node?.id };
  return all ? listAll(client, options, only) : listOwn(client, options, only);
}

type Only = { allocation_id: string | undefined; node_id: string | undefined };

async function listOwn(client: Client, options: ListOptions, only: Only): Promise<void> {
  const { items: open, limit } = await client(listMyTerminals, {});
  const items = open.filter(
    ({ allocation_id, node_id }) =>
      (only.allocation_id ?? allocation_id) === allocation_id && (only.node_id ?? node_id) === node_id,
  );
  printResult(options, { items, limit }, () => {
    const count = `${open.length} of ${limit} terminals open. Detached ones count too.`;
    const [newest] = items;
    if (!newest) return open.length === 0 ? "You have no open terminals." : `No terminal matches. ${count}`;
    const several = new Set(open.map(({ organization }) => organization.id)).size > 1;
    const rows = table(items, several ? [organization, ...columns, id] : [...columns, id]);
    return `${rows}\n${count} To end the newest: holdfast terminal end ${newest.id}`;
  });
}

async function listAll(client: Client, options: ListOptions, only: Only): Promise<void> {
  const { state, correlation: correlation_id, limit = DEFAULT_LIMIT, cursor } = options;
  const page = await client(listTerminals, { query: { ...only, state, correlation_id, limit, cursor } });
  printResult(options, page, ({ items, next_cursor }) => {
    if (items.length === 0) return "No terminal matches.";
    if (correlation_id !== undefined) return items.map(describeTerminal).join("\n\n");
    const rows = table(items, [...columns, failedAt, openedBy, id]);
    return rows + nextPage(items, next_cursor);
  });
}

const organization: Column<MyTerminal> = { title: "organization", of: (row) => row.organization.name };
const failedAt: Column<TerminalSession> = { title: "failed at, owner", of: placeOf };
const openedBy: Column<TerminalSession> = { title: "opened by", of: (row) => row.opened_by };
const id: Column<TerminalSession> = { title: "id", of: (row) => row.id };
const columns: Column<TerminalSession>[] = [
  { title: "terminal", of: (row) => `${row.username}@${row.node_name}` },
  { title: "state", of: stateOf },
  { title: "opened", of: (row) => localTime(row.created_at) },
  { title: "ends", of: endOf },
];

/** A detached one by itself; one that is attached when the longest time is over. */
function endOf({ closed_at, ends_at }: TerminalSession): string | null {
  if (ends_at === null) return localTime(closed_at);
  return `in ${span(Math.max(0, Date.parse(ends_at) - Date.now()))}`;
}
