// holdfast allocation grant, grants, revoke-grant, transfer: who else has access to an allocation.

import {
  type AllocationGrant,
  createAllocationGrant,
  GrantLevel,
  listAllocationGrants,
  revokeAllocationGrant,
  transferAllocation,
} from "@holdfast/contracts/endpoints/allocations";
import { type Command, Option } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { findAllocation } from "../../client/find-allocation.ts";
import { findMember } from "../../client/find-member.ts";
import { localTime, printResult, table } from "../../output.ts";
import { minutesOf } from "../minutes.ts";

type GrantOptions = ServerOptions & { level: GrantLevel; expires?: number };

export function addSharingCommands(allocation: Command): void {
  withServerOptions(allocation.command("grant"))
    .description("share an allocation with a member for a limited time")
    .argument("<id or user@node>")
    .argument("<email>", "a member of the organization")
    .addOption(
      new Option("--level <level>", "view: see it and its state; use: also open terminals")
        .choices(GrantLevel.options)
        .default("view"),
    )
    .option("--expires <time>", "such as 90m, 12h or 30d; at most 90d; default: 7d", minutesOf)
    .action(grant);
  withServerOptions(allocation.command("grants"))
    .description("list the members an allocation is shared with")
    .argument("<id or user@node>")
    .action(async (wanted: string, options: ServerOptions) => {
      const client = await connect(options);
      const { id, username, node_name } = await findAllocation(client, wanted);
      printResult(options, await client(listAllocationGrants, { params: { allocation_id: id } }), ({ items }) =>
        items.length === 0 ? `${username}@${node_name} is not shared.` : describeGrants(items),
      );
    });
  withServerOptions(allocation.command("revoke-grant"))
    .description("revoke a grant; the member's terminals there close within seconds")
    .argument("<id or user@node>")
    .argument("<email>")
    .action(async (wanted: string, email: string, options: ServerOptions) => {
      const client = await connect(options);
      const { id, username, node_name } = await findAllocation(client, wanted);
      const member = await findMember(client, email);
      await client(revokeAllocationGrant, { params: { allocation_id: id, user_id: member.user_id } });
      const revoked = { allocation_id: id, user_id: member.user_id, email: member.email };
      printResult(
        options,
        revoked,
        () =>
          `Revoked: ${member.email} no longer has access to ${username}@${node_name}. Their terminals there are being closed.`,
      );
    });
  withServerOptions(allocation.command("transfer"))
    .description("make another member the owner (administrators only); all grants end")
    .argument("<id or user@node>")
    .requiredOption("--to <email>", "a member of the organization")
    .action(async (wanted: string, options: ServerOptions & { to: string }) => {
      const client = await connect(options);
      const { id, username, node_name } = await findAllocation(client, wanted);
      const { user_id: owner_id, email } = await findMember(client, options.to);
      const transferred = await client(transferAllocation, { params: { allocation_id: id }, body: { owner_id } });
      printResult(options, transferred, () =>
        [
          `${email} is now the owner of ${username}@${node_name}. All grants ended.`,
          "The user on the node keeps its files and SSH keys.",
        ].join("\n"),
      );
    });
}

async function grant(wanted: string, email: string, options: GrantOptions): Promise<void> {
  const client = await connect(options);
  const { id, username, node_name } = await findAllocation(client, wanted);
  const member = await findMember(client, email);
  const expires_in_seconds = options.expires === undefined ? undefined : options.expires * 60;
  const made = await client(createAllocationGrant, {
    params: { allocation_id: id },
    body: { user_id: member.user_id, level: options.level, expires_in_seconds },
  });
  const may = made.level === "use" ? "see it and open terminals" : "see it and its state";
  const until = localTime(made.expires_at);
  printResult(
    options,
    made,
    () =>
      `Shared ${username}@${node_name} with ${made.email} until ${until}: they can ${may}.\nTo revoke it: holdfast allocation revoke-grant ${username}@${node_name} ${made.email}`,
  );
}

function describeGrants(items: AllocationGrant[]): string {
  return table(items, [
    { title: "member", of: (row) => row.email },
    { title: "level", of: (row) => row.level },
    { title: "expires", of: (row) => localTime(row.expires_at) },
    { title: "granted by", of: (row) => row.granted_by },
    { title: "granted", of: (row) => localTime(row.granted_at) },
  ]);
}
