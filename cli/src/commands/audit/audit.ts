// holdfast audit list.

import { AuditResult, listAudit, listPlatformAudit } from "@holdfast/contracts/endpoints/audit";
import { integer } from "@holdfast/kit/settings";
import { Command, InvalidArgumentError, Option } from "commander";
import { clientOf, connect, findServer, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { localTime, nextPage, printResult, table } from "../../output.ts";

type ListOptions = ServerOptions & {
  actor?: string;
  action?: string;
  target?: string;
  result?: AuditResult;
  correlation?: string;
  incident?: string;
  since?: string;
  until?: string;
  limit: number;
  cursor?: string;
  all?: boolean;
};

export function auditCommand(): Command {
  const audit = new Command("audit").description("who did what, to what, with which result");
  withServerOptions(audit.command("list"))
    .description("list audit events, newest first")
    .option("--actor <id or name>", "who did it; part of a name matches")
    .option("--action <noun.verb>", "exact, or with a trailing dot all actions of a noun: token.")
    .option("--target <id or name>", "what it was done to; part of a name matches")
    .addOption(new Option("--result <result>").choices(AuditResult.options))
    .option("--correlation <id>", "all events of one request")
    .option("--incident <id>", "what was done to its node in the course of this incident")
    .option("--since <time>", "ISO 8601, or an age such as 30m, 12h, 7d", parseTime)
    .option("--until <time>", "ISO 8601, or an age such as 30m, 12h, 7d", parseTime)
    .option("--limit <count>", "1 to 200", parseLimit, 50)
    .option("--cursor <cursor>", "next_cursor of the previous page")
    .option("--all", "all organizations and the platform: sign-ins, links … (operator only)")
    .action(async (options: ListOptions) => {
      const { actor, action, target, result, correlation, incident, since, until, limit, cursor } = options;
      const ids = { correlation_id: correlation, incident_id: incident };
      const query = { actor, action, target, result, ...ids, since, until, limit, cursor };
      const page = options.all
        ? await clientOf(findServer(options))(listPlatformAudit, { query })
        : await (await connect(options))(listAudit, { query });
      printResult(options, page, ({ items, next_cursor }) => {
        if (items.length === 0) return "No event matches.";
        return rowsOf(items) + nextPage(items, next_cursor);
      });
    });
  return audit;
}

type Item = { at: string; actor_name: string; role: string; action: string; target_type: string } & {
  target_name: string | null;
  target_id: string | null;
  result: string;
  reason: string | null;
  correlation_id: string;
};

function rowsOf(items: Item[]): string {
  return table(items, [
    { title: "time", of: (row) => localTime(row.at) },
    { title: "actor", of: (row) => `${row.actor_name} (${row.role})` },
    { title: "action", of: (row) => row.action },
    { title: "target", of: (row) => `${row.target_type} ${row.target_name ?? row.target_id ?? ""}` },
    { title: "result", of: (row) => row.result + (row.reason ? ` ${row.reason}` : "") },
    { title: "correlation id", of: (row) => row.correlation_id },
  ]);
}

const units: Record<string, number> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Exported for its test. */
export function parseTime(text: string, _previous?: unknown, now: number = Date.now()): string {
  const ago = /^(\d{1,6})([mhd])$/.exec(text);
  if (ago) return isoTime(new Date(now - Number(ago[1]) * (units[ago[2] ?? "m"] ?? 0)));
  return isoTime(/^\d{4}-\d\d-\d\d(T|$)/.test(text) ? new Date(text) : new Date(Number.NaN));
}

/** The contract knows the years 0 to 9999 only. */
function isoTime(at: Date): string {
  const text = Number.isNaN(at.getTime()) ? "" : at.toISOString();
  if (!/^\d{4}-/.test(text))
    throw new InvalidArgumentError("Use an ISO 8601 time, or an age such as 30m, 12h, 7d.");
  return text;
}

function parseLimit(text: string): number {
  const limit = integer({ min: 1, max: 200 }).parse(text);
  if (limit === undefined) throw new InvalidArgumentError("Use a whole number from 1 to 200.");
  return limit;
}
