// holdfast logs: the log lines of all processes that name an id.

import {
  findLogs,
  type LogLine,
  type LogReplica,
  logProcesses,
  MOST_LOG_LINES,
} from "@holdfast/contracts/endpoints/logs";
import { Command, Option } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { localTime, printResult, table } from "../../output.ts";
import { parseTime } from "../audit/audit.ts";
import { wholeNumber } from "../options.ts";

type LogOptions = ServerOptions & {
  correlation: string;
  since?: string;
  until?: string;
  process?: LogLine["process"];
  limit: number;
};

export function logsCommand(): Command {
  return withServerOptions(new Command("logs"))
    .description("show the log lines of all processes that name an id, oldest first")
    .requiredOption(
      "--correlation <id>",
      "a correlation id, or the id of a node, terminal, task, execution or lease",
    )
    .option("--since <time>", "ISO 8601, or an age such as 30m, 12h, 7d", parseTime)
    .option("--until <time>", "ISO 8601, or an age such as 30m, 12h, 7d", parseTime)
    .addOption(new Option("--process <kind>", "only of processes of this kind").choices(logProcesses))
    .option("--limit <count>", `1 to ${MOST_LOG_LINES}`, wholeNumber({ min: 1, max: MOST_LOG_LINES }), 200)
    .action(async ({ correlation: id, since, until, process, limit, ...options }: LogOptions) => {
      const client = await connect(options);
      const found = await client(findLogs, { query: { id, since, until, process, limit } });
      printResult(options, found, ({ items, truncated, replicas }) =>
        [
          items.length === 0 ? "No line is kept under this id that you have access to." : table(items, columns),
          ...(truncated ? ["", "There are more: the newest are shown. Use --since, --until or --limit."] : []),
          ...missingLines(replicas),
        ].join("\n"),
      );
    });
}

const columns = [
  { title: "time", of: ({ at }: LogLine) => localTime(at) },
  { title: "process", of: ({ process, replica }: LogLine) => `${process} ${replica.slice(-6)}` },
  { title: "level", of: ({ level }: LogLine) => level },
  { title: "message", of: ({ message }: LogLine) => message },
  { title: "fields", of: ({ fields }: LogLine) => JSON.stringify(fields) },
];

/** Lines of processes that did not answer are missing, and that is said. */
export function missingLines(replicas: readonly LogReplica[]): string[] {
  const named = (state: LogReplica["state"]) =>
    replicas
      .filter((one) => one.state === state)
      .map(({ process, replica, host }) => `${process} ${replica}${host === null ? "" : ` on ${host}`}`)
      .join(", ");
  const [unreachable, empty] = [named("unreachable"), named("keeps_none")];
  const dropped = replicas.reduce((sum, one) => sum + one.dropped, 0);
  return [
    ...(unreachable === "" ? [] : ["", `Unreachable, so its lines are missing: ${unreachable}`]),
    ...(empty === "" ? [] : ["", `Keeps no lines (HOLDFAST_LOG_STORE_DIR is not set there): ${empty}`]),
    ...(dropped === 0 ? [] : ["", `${dropped} lines could not be stored, as on a full disk.`]),
  ];
}
