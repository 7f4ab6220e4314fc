// holdfast trace: the whole story behind an id, in the order of time.

import { getTrace, MOST_TRACED, type Trace, type TraceEntry } from "@holdfast/contracts/endpoints/trace";
import { Command } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { localTime, printResult, table } from "../../output.ts";
import { missingLines } from "../logs/logs.ts";

export function traceCommand(): Command {
  return withServerOptions(new Command("trace"))
    .description("show everything about an id: refusals, classifications, actions, results, proofs and log lines")
    .argument("<id>", "of an incident, a task, an audit event, or a correlation id")
    .action(async (id: string, options: ServerOptions) => {
      const client = await connect(options);
      printResult(options, await client(getTrace, { params: { trace_id: id } }), describeTrace);
    });
}

/** Exported for its test. */
export function describeTrace({ id, incidents, items, truncated, withheld, replicas }: Trace): string {
  return [
    ...(incidents.length === 0 ? [`Trace ${id}`] : incidents.map(describeIncident)),
    "",
    items.length === 0 ? "Nothing is recorded under this id that you have access to." : table(items, columns),
    ...(truncated ? ["", `There is more: of each source the newest ${MOST_TRACED} entries are shown.`] : []),
    ...(withheld.length === 0 ? [] : ["", `Left out, because your token lacks the scope: ${withheld.join(", ")}`]),
    ...missingLines(replicas),
  ].join("\n");
}

function describeIncident({ id, node_name, title, reason, state }: Trace["incidents"][number]): string {
  return `Incident ${id}: ${node_name ?? "several nodes"}, ${title} (${reason}), ${state}`;
}

const columns = [
  { title: "time", of: ({ at }: TraceEntry) => localTime(at) },
  { title: "kind", of: ({ kind }: TraceEntry) => kind },
  { title: "what", of: ({ title, code }: TraceEntry) => (code === null ? title : `${title} (${code})`) },
  { title: "by", of: ({ by }: TraceEntry) => by },
  { title: "id", of: ({ ref, correlation_id }: TraceEntry) => (ref ? `${ref.type} ${ref.id}` : correlation_id) },
  { title: "detail", of: ({ detail }: TraceEntry) => detail },
];
