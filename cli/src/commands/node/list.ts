// holdfast node list: how the fleet is, in a few lines, and the nodes by pages. For scripts all of them.

import { type Fleet, FleetFilter, fleetStates, getFleet } from "@holdfast/contracts/endpoints/fleet";
import { listNodes, type Node } from "@holdfast/contracts/endpoints/nodes";
import { NodeStatus } from "@holdfast/contracts/node-protocol";
import { type Command, Option } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { everyPage } from "../../client/pages.ts";
import { printResult, span } from "../../output.ts";
import { wholeNumber } from "../options.ts";
import { nodeTable } from "./describe.ts";

const MOST = 200;
const stateChoices = FleetFilter.shape.state.unwrap().options;

type ListOptions = ServerOptions & {
  status?: NodeStatus;
  state?: FleetFilter["state"];
  search?: string;
  attention?: string;
  agentVersion?: string;
  capability?: string;
  block?: string;
  limit?: number;
  after?: string;
};

export function addList(node: Command): void {
  withServerOptions(node.command("list"))
    .description("how the fleet is, and its nodes, newest first")
    .addOption(new Option("--status <status>", "by lifecycle").choices(NodeStatus.options))
    .addOption(new Option("--state <state>", "by how they are").choices(stateChoices))
    .option("--search <text>", "a part of the name, host name or address, or the beginning of the id")
    .option("--attention <code>", "only those that need attention for this reason")
    .option("--agent-version <version>", "only those whose agent has this version")
    .option("--capability <name>", "only those whose agent has this capability")
    .option("--block <block>", "only those in this address block, such as 10.0.5.0/24")
    .option("--limit <number>", "nodes on a page (people: 50; --json: all)", wholeNumber({ min: 1, max: MOST }))
    .option("--after <cursor>", "the next page, as the one before says")
    .action(list);
}

async function list(options: ListOptions): Promise<void> {
  const { status, state, search, attention, capability, block, after } = options;
  const filter: FleetFilter = { state, search, attention, version: options.agentVersion, capability, block };
  const filtered = [status, ...Object.values(filter)].some((value) => value !== undefined);
  const client = await connect(options);
  if (options.json && options.limit === undefined && after === undefined) {
    const items = await everyPage((cursor) =>
      client(listNodes, { query: { ...filter, status, cursor, limit: MOST } }),
    );
    return printResult(options, { items }, () => "");
  }
  const page = { limit: options.limit ?? 50, cursor: after };
  const { items, next_cursor } = await client(listNodes, { query: { ...filter, status, ...page } });
  if (options.json) return printResult(options, { items, next_cursor }, () => "");
  const fleet = await client(getFleet, { query: status === undefined ? filter : {} });
  printResult(options, items, () =>
    [
      ...(after === undefined && fleet.total > 0 ? [...describeFleet(fleet), ""] : []),
      nodeTable(items, { filtered }),
      ...(next_cursor ? ["", more(items, fleet, { next_cursor, counted: filtered && status === undefined })] : []),
    ].join("\n"),
  );
}

function more(
  items: readonly Node[],
  fleet: Fleet,
  { next_cursor, counted }: { next_cursor: string; counted: boolean },
) {
  const of = counted ? ` of ${fleet.matching}` : "";
  return `${items.length}${of} shown. The next page: repeat this with --after ${next_cursor}`;
}

const MOST_TROUBLES = 5;

function describeFleet(fleet: Fleet): string[] {
  const states = fleetStates.filter((state) => fleet.states[state] > 0);
  const counts = states.map((state) => `${fleet.states[state]} ${state}`).join(", ") || "none";
  const head = fleet.matching === fleet.total ? `${fleet.total}` : `${fleet.matching} of ${fleet.total}`;
  const others = fleet.troubles.length - MOST_TROUBLES;
  return [
    ...(fleet.own_side ? [`! ${fleet.own_side.message}`, `  ${fleet.own_side.next_step}`, ""] : []),
    `${head} ${fleet.total === 1 ? "node" : "nodes"}: ${counts}`,
    ...fleet.troubles
      .slice(0, MOST_TROUBLES)
      .flatMap((trouble) => [
        `  ! ${trouble.count} ${trouble.code}${since(trouble, fleet.at)}${shared(trouble)}`,
        `    ${trouble.next_step}`,
      ]),
    ...(others > 0 ? [`  and ${others} more reasons: holdfast node list --state not_fine`] : []),
  ];
}

function since({ first_at, last_at }: Fleet["troubles"][number], now: string): string {
  if (first_at === null || last_at === null) return "";
  const age = (at: string) => span(Math.max(0, Date.parse(now) - Date.parse(at)));
  return age(first_at) === age(last_at) ? `, for ${age(first_at)}` : `, for ${age(last_at)} to ${age(first_at)}`;
}

function shared({ common }: Fleet["troubles"][number]): string {
  return common
    .map(({ attribute, value, count, of }) => `; ${count} of the ${of} with ${attribute} ${value}`)
    .join("");
}
