// holdfast incident list, show, export.

import { writeFileSync } from "node:fs";
import {
  getIncident,
  type Incident,
  type IncidentDetail,
  IncidentState,
  listIncidents,
  listPlatformIncidents,
} from "@holdfast/contracts/endpoints/incidents";
import { owners } from "@holdfast/contracts/reasons/owners";
import { nextActions } from "@holdfast/contracts/reasons/vocabulary";
import { UsageError } from "@holdfast/kit/settings";
import { Command, Option } from "commander";
import { clientOf, connect, findServer, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { findNode } from "../../client/find-node.ts";
import { ago, localTime, nextPage, printResult, table } from "../../output.ts";
import { wholeNumber } from "../options.ts";

type ListOptions = ServerOptions & {
  node?: string;
  state?: Incident["state"];
  partOf?: string;
  episode?: string;
  limit?: number;
  cursor?: string;
  platform?: boolean;
};
type ExportOptions = ServerOptions & { out?: string; verdict?: number };

export function incidentCommand(): Command {
  const incident = new Command("incident").description("what was wrong with nodes, and when");
  withServerOptions(incident.command("list"))
    .description("list incidents, newest first")
    .option("--node <node>", "only those of this node, by id or name")
    .addOption(new Option("--state <state>", "only these").choices(IncidentState.options))
    .option("--part-of <incident>", "only the incidents of nodes that are part of this one")
    .option("--episode <id>", "only those that a host recorded under this correlation id")
    .option("--platform", "common causes across all organizations (operator only)")
    .option("--limit <number>", "at most as many", wholeNumber({ min: 1, max: 200 }))
    .option("--cursor <cursor>", "the next page, as printed by the previous one")
    .action(list);
  withServerOptions(incident.command("show"))
    .description("show an incident: its cause, its times, and what was said in its course")
    .argument("<incident>", "id")
    .action(async (id: string, options: ServerOptions) => {
      const client = await connect(options);
      printResult(options, await client(getIncident, { params: { incident_id: id } }), describeIncident);
    });
  withServerOptions(incident.command("export"))
    .description("write the evidence of an incident as a file that `npm run classify` reads")
    .argument("<incident>", "id")
    .option("--out <file>", "where to write it; default: standard output")
    .option(
      "--verdict <number>",
      "the evidence of this verdict, counted from 1 as `incident show` does; default: the last",
      wholeNumber({ min: 1, max: 1_000_000 }),
    )
    .action(exportEvidence);
  return incident;
}

async function list(given: ListOptions): Promise<void> {
  const { node, state, partOf, episode, limit, cursor, platform, ...options } = given;
  if (platform) return listPlatform(given);
  const client = await connect(options);
  const node_id = node === undefined ? undefined : (await findNode(client, node)).id;
  const query = {
    ...(node_id ? { node_id } : {}),
    ...(state ? { state } : {}),
    ...(partOf ? { part_of: partOf } : {}),
    ...(episode ? { episode } : {}),
    ...(limit ? { limit } : {}),
    ...(cursor ? { cursor } : {}),
  };
  printResult(options, await client(listIncidents, { query }), ({ items, next_cursor }) =>
    items.length === 0
      ? "No incidents."
      : table(items, [
          { title: "node", of: (row) => row.node_name ?? `${row.node_count} nodes` },
          { title: "state", of: (row) => row.state },
          { title: "reason", of: (row) => `${row.title} (${row.reason})` },
          { title: "severity", of: (row) => row.severity },
          { title: "opened", of: (row) => ago(row.opened_at) },
          { title: "lasted", of: (row) => lasted(row) },
          { title: "id", of: (row) => row.id },
          { title: "part of", of: (row) => row.part_of },
        ]) + nextPage(items, next_cursor),
  );
}

async function listPlatform({
  node,
  state,
  partOf,
  episode,
  limit,
  cursor,
  ...options
}: ListOptions): Promise<void> {
  if (node !== undefined || partOf !== undefined || episode !== undefined) {
    throw new UsageError("--platform cannot be combined with --node, --part-of or --episode.");
  }
  const query = { ...(state ? { state } : {}), ...(limit ? { limit } : {}), ...(cursor ? { cursor } : {}) };
  const page = await clientOf(findServer(options))(listPlatformIncidents, { query });
  printResult(options, page, ({ items, next_cursor }) =>
    items.length === 0
      ? "No incidents."
      : table(items, [
          { title: "state", of: (row) => row.state },
          { title: "reason", of: (row) => `${row.title} (${row.reason})` },
          { title: "nodes", of: (row) => String(row.node_count) },
          { title: "organizations", of: (row) => String(row.organization_count) },
          { title: "in common", of: (row) => [row.shared.attribute, row.shared.value].filter(Boolean).join(" ") },
          { title: "opened", of: (row) => ago(row.opened_at) },
          { title: "id", of: (row) => row.id },
        ]) + nextPage(items, next_cursor),
  );
}

function lasted({ opened_at, closed_at }: Pick<Incident, "opened_at" | "closed_at">): string | null {
  if (closed_at === null) return null;
  return `${Math.round((Date.parse(closed_at) - Date.parse(opened_at)) / 1000)} s`;
}

/** Exported for its test. */
export function describeIncident(incident: IncidentDetail): string {
  const { id, title, reason, severity, owner_id, next_action, closed_at, began_at, opened_at, shared } = incident;
  const { part_of, episodes } = incident;
  const detectedIn = Math.round((Date.parse(opened_at) - Date.parse(began_at)) / 1000);
  return [
    `${incident.node_name ?? `${incident.node_count} nodes`}: ${title} (${reason}), ${incident.state}`,
    ...(shared ? [shared.sentence] : []),
    `  severity  ${severity}`,
    `  owner     ${owner_id ? owners[owner_id].title : "nobody"}`,
    `  next      ${next_action ? nextActions[next_action] : "Nothing to do."}`,
    `  began     ${localTime(began_at)}`,
    `  noticed   ${localTime(opened_at)}, after ${detectedIn} s (at most ${incident.detect_within_seconds} s)`,
    ...(closed_at ? [`  ended     ${localTime(closed_at)}, after ${lasted(incident)}`] : []),
    ...(part_of ? [`  part of   ${part_of}: holdfast incident show ${part_of}`] : []),
    ...(episodes.length > 0 ? [`  episodes  ${episodes.join(", ")}`] : []),
    "",
    ...(shared ? membersOf(incident) : verdictsOf(incident)),
    "",
    ...(shared
      ? [`All its incidents: holdfast incident list --part-of ${id}`]
      : [
          `Tasks in its course: holdfast task list --incident ${id}`,
          `Audit: holdfast audit list --incident ${id}`,
        ]),
  ].join("\n");
}

function membersOf({ nodes }: IncidentDetail): string[] {
  return [
    table(nodes, [
      { title: "node", of: ({ name }) => name },
      { title: "state", of: ({ state }) => state },
      { title: "incident", of: ({ incident_id }) => incident_id },
    ]),
  ];
}

function verdictsOf(incident: IncidentDetail): string[] {
  return [
    table(
      incident.verdicts.map((verdict, index) => ({ ...verdict, number: index + 1 })),
      [
        { title: "#", of: ({ number }) => String(number) },
        { title: "time", of: ({ at }) => localTime(at) },
        {
          title: "causes",
          of: ({ causes }) => causes.map((one) => `${one.title} (${one.reason}, ${one.confidence})`).join(", "),
        },
      ],
    ),
  ];
}

async function exportEvidence(id: string, { out, verdict, ...options }: ExportOptions): Promise<void> {
  const client = await connect(options);
  const { verdicts, shared } = await client(getIncident, { params: { incident_id: id } });
  if (shared) {
    const members = `holdfast incident list --part-of ${id}`;
    throw new UsageError(`This incident is of several nodes. Export that of one node: \`${members}\` lists them.`);
  }
  const chosen = verdict === undefined ? verdicts.at(-1) : verdicts[verdict - 1];
  if (!chosen) throw new UsageError(`The incident has ${verdicts.length} verdicts; choose one of them.`);
  const text = `${JSON.stringify(chosen.evidence, null, 2)}\n`;
  if (out === undefined) {
    process.stdout.write(text);
    return;
  }
  try {
    writeFileSync(out, text, { flag: "wx" });
  } catch (error) {
    throw new UsageError(`Cannot write ${out}: ${(error as Error).message}`);
  }
  printResult(
    options,
    { file: out, observations: chosen.evidence.observations.length },
    ({ observations }) =>
      `Wrote ${observations} observations to ${out}. Classify them: npm run classify -- ${out}`,
  );
}
