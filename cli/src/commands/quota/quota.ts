// holdfast quota: how many allocations may exist at a time.

import { getQuotas, type Quotas, updateMemberQuota, updateQuotas } from "@holdfast/contracts/endpoints/quotas";
import { UsageError } from "@holdfast/kit/settings";
import { Command } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { findMember } from "../../client/find-member.ts";
import { printResult, table } from "../../output.ts";
import { wholeNumber } from "../options.ts";

const count = wholeNumber({ min: 0, max: 100_000 });

type SetOptions = ServerOptions & {
  organization?: number;
  perOwner?: number;
  member?: string;
  limit?: number | "default";
};

export function quotaCommand(): Command {
  const quota = new Command("quota").description("allocation limits");
  withServerOptions(quota.command("show"))
    .description("show the limits and the number of allocations")
    .action(async (options: ServerOptions) => {
      const client = await connect(options);
      printResult(options, await client(getQuotas, {}), describeQuotas);
    });
  withServerOptions(quota.command("set"))
    .description("change the limits (administrators only); existing allocations above a lower limit are kept")
    .option("--organization <count>", "for the whole organization (platform operator)", count)
    .option("--per-owner <count>", "for each owner without an individual limit", count)
    .option("--member <email>", "for one member; requires --limit")
    .option("--limit <count>", "a number, or `default` to use --per-owner", (text) =>
      text === "default" ? text : count(text),
    )
    .action(set);
  return quota;
}

async function set(options: SetOptions): Promise<void> {
  const { organization, perOwner: per_owner, member, limit } = options;
  const common = organization !== undefined || per_owner !== undefined;
  if ((member === undefined) !== (limit === undefined)) {
    throw new UsageError("--member and --limit must be used together: --member ada@example.com --limit 50");
  }
  if (!common && member === undefined) {
    throw new UsageError("Nothing to change. Use --organization, --per-owner, or --member with --limit.");
  }
  const client = await connect(options);
  let changed: Quotas | undefined;
  if (common) changed = await client(updateQuotas, { body: { organization, per_owner } });
  if (member !== undefined && limit !== undefined) {
    const { user_id } = await findMember(client, member);
    const body = { limit: limit === "default" ? null : limit };
    changed = await client(updateMemberQuota, { params: { user_id }, body });
  }
  if (changed) printResult(options, changed, describeQuotas);
}

function describeQuotas({ organization, per_owner, own, members }: Quotas): string {
  const rows = [
    { whose: "organization", ...organization },
    ...(own ? [{ whose: "you", ...own }] : []),
    ...members.map(({ email, own_limit, ...usage }) => ({
      whose: email + (own_limit ? " (individual limit)" : ""),
      ...usage,
    })),
  ];
  const numbers = table(rows, [
    { title: "allocations of", of: (row) => row.whose },
    { title: "used", of: (row) => String(row.used) },
    { title: "limit", of: (row) => String(row.limit) },
  ]);
  return `${numbers}\nDefault limit per owner: ${per_owner}. Every allocation that is not released counts.`;
}
