// holdfast node list: a summary of the fleet and one page of nodes; with --json all nodes. Retired nodes are listed only
// on request.

import { type Fleet, fleetStates, getFleet } from "@holdfast/contracts/endpoints/fleet";
import { listNodes, type NodeStateFilter } from "@holdfast/contracts/endpoints/nodes";
import { NodeStatus } from "@holdfast/contracts/node/protocol";
import { owners } from "@holdfast/contracts/reasons/owners";
import { fleetStateTitles } from "@holdfast/contracts/words/state-titles";
import { type Command, Option } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { everyPage } from "../../client/pages.ts";
import { printResult, span } from "../../output.ts";
import { commonCauses } from "../fleet/fleet.ts";
import { wholeNumber } from "../options.ts";
import { stateOption } from "../state-option.ts";
import { nodeTable } from "./describe.ts";

const MOST = 200;
const filterOptions = ["state", "status", "search", "attention", "agentVersion", "capability", "block"] as const;

type ListOptions = ServerOptions & {
  status?: NodeStatus;
  state?: NodeStateFilter;
  all?: boolean;
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
    .description("summarize the fleet and list its nodes, worst first; with --json or --all newest first")
    .addOption(new Option("--status <status>", "by lifecycle status").choices(NodeStatus.options))
    .addOption(nodeStateOption())
    .addOption(new Option("--all", "include retired nodes").conflicts([...filterOptions]))
    .option("--search <text>", "part of the name, host name or address, or the start of the id")
    .option("--attention <code>", "only nodes with this problem")
    .option("--agent-version <version>", "only nodes with this agent version")
    .option("--capability <name>", "only nodes with this capability")
    .option("--block <block>", "only nodes in this address block, such as 10.0.5.0/24")
    .option(
      "--limit <number>",
      "nodes per page (default: 50; with --json: all)",
      wholeNumber({ min: 1, max: MOST }),
    )
    .option("--after <cursor>", "the next page, as printed by the previous one")
    .action(list);
}

export function nodeStateOption(): Option {
  return stateOption<NodeStateFilter>("--state <state>", "by state; default: all but retired", fleetStateTitles, {
    unhealthy: "not_fine",
    retired: "retired",
    present: "present",
  });
}

async function list(options: ListOptions): Promise<void> {
  const { status, search, attention, capability, block, after } = options;
  const filter = { search, attention, version: options.agentVersion, capability, block };
  const state = options.state ?? (options.all || status === "retired" ? undefined : "present");
  const query = { ...filter, status, state };
  const client = await connect(options);
  if (options.json && options.limit === undefined && after === undefined) {
    const items = await everyPage((cursor) => client(listNodes, { query: { ...query, cursor, limit: MOST } }));
    return printResult(options, { items }, () => "");
  }
  const order = options.json || state === undefined ? "newest" : "worst";
  const page = await client(listNodes, { query: { ...query, order, limit: options.limit ?? 50, cursor: after } });
  if (options.json) return printResult(options, page, () => "");
  const { items, total, next_cursor } = page;
  const ofFleet = status === undefined && state !== "retired";
  const fleet =
    ofFleet && after === undefined ? await client(getFleet, { query: { ...filter, state } }) : undefined;
  const filtered = filterOptions.some((name) => options[name] !== undefined);
  printResult(options, items, () =>
    [
      ...(fleet && fleet.total > 0 ? [...describeFleet(fleet, { retired: total - fleet.matching }), ""] : []),
      ...(ofFleet || total === 0 ? [] : [nodesInWords(total, status ?? "retired"), ""]),
      nodeTable(items, { filtered, now: Date.now() }),
      ...(items.length < total ? ["", cutLine({ shown: items.length, total, next_cursor })] : []),
    ].join("\n"),
  );
}

function nodesInWords(count: number, kind?: string): string {
  return [count, kind, count === 1 ? "node" : "nodes"].filter((word) => word !== undefined).join(" ");
}

function cutLine({
  shown,
  total,
  next_cursor,
}: {
  shown: number;
  total: number;
  next_cursor: string | null;
}): string {
  const next = next_cursor === null ? "This is the last page." : `For the next page, add --after ${next_cursor}`;
  return `Showing ${shown} of ${total}. ${next}`;
}

const MOST_TROUBLES = 5;

/** `retired`: how many retired nodes the table lists beside the fleet. */
function describeFleet(fleet: Fleet, { retired }: { retired: number }): string[] {
  const states = fleetStates.filter((state) => fleet.states[state] > 0);
  const counts =
    states.map((state) => `${fleet.states[state]} ${fleetStateTitles[state].title.toLowerCase()}`).join(", ") ||
    "none";
  const all = nodesInWords(fleet.total);
  const head = fleet.matching === fleet.total ? all : `${fleet.matching} of ${all}`;
  const beside = retired > 0 ? `; also ${nodesInWords(retired, "retired")}` : "";
  const others = fleet.troubles.length - MOST_TROUBLES;
  return [
    ...(fleet.own_side ? [`! ${fleet.own_side.message}`, `  ${fleet.own_side.next_step}`, ""] : []),
    `${head}: ${counts}${beside}`,
    ...(fleet.pending > 0 ? [`  ! ${fleet.pending} offline, cause being determined`] : []),
    ...fleet.troubles
      .slice(0, MOST_TROUBLES)
      .flatMap((trouble) => [
        `  ! ${trouble.count} ${trouble.title} (${trouble.code})${urgency(trouble)}${since(trouble, fleet.at)}`,
        ...commonCauses(trouble).map((line) => `    ${line}`),
        `    ${trouble.next_step}`,
      ]),
    ...(others > 0 ? [`  and ${others} more reasons: holdfast node list --state unhealthy`] : []),
  ];
}

function urgency({ severity, owner_id }: Fleet["troubles"][number]): string {
  return [severity, owner_id && owners[owner_id].title].flatMap((word) => (word ? `, ${word}` : [])).join("");
}

function since({ first_at, last_at }: Fleet["troubles"][number], now: string): string {
  if (first_at === null || last_at === null) return "";
  const age = (at: string) => span(Math.max(0, Date.parse(now) - Date.parse(at)));
  return age(first_at) === age(last_at) ? `, for ${age(first_at)}` : `, for ${age(last_at)} to ${age(first_at)}`;
}
