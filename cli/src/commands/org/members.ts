// holdfast org set-role, remove-member. Both end tokens that the member created, and list them first.

import {
  listMembers,
  listMemberTokens,
  type Member,
  removeMember,
  updateMember,
} from "@holdfast/contracts/endpoints/members";
import { countIssued, type IssuedToken } from "@holdfast/contracts/public/issued-tokens";
import { Role } from "@holdfast/contracts/public/permissions";
import { UsageError } from "@holdfast/kit/settings";
import { type Command, InvalidArgumentError } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { everyPage } from "../../client/pages.ts";
import { harmless, printResult } from "../../output.ts";
import { agreed } from "../../prompt.ts";
import { endedLines, issuedTable, rejoinLines } from "../issued.ts";

type ChangeOptions = ServerOptions & { yes?: boolean };

export function addMemberCommands(org: Command): void {
  withServerOptions(org.command("set-role"))
    .description("change a member's role; their tokens that need a higher role end")
    .argument("<email>")
    .argument("<role>", Role.options.join(", "), parseRole)
    .option("--yes", "do not ask")
    .action(async (email: string, role: Role, options: ChangeOptions) => {
      const client = await connect(options);
      const member = await findMember(client, email);
      const params = { user_id: member.user_id };
      const { items } = await client(listMemberTokens, { params, query: { role } });
      if (!(await confirmed(options, `Change the role of ${email} to ${role}?`, items))) return;
      const changed = await client(updateMember, { params, body: { role } });
      printResult(options, changed, () =>
        [`${email} is now ${changed.role}.`, ...endedLines(changed.ended)].join("\n"),
      );
    });
  withServerOptions(org.command("remove-member"))
    .description("remove a member; all tokens they created in the organization end")
    .argument("<email>")
    .option("--yes", "do not ask")
    .action(async (email: string, options: ChangeOptions) => {
      const client = await connect(options);
      const member = await findMember(client, email);
      const params = { user_id: member.user_id };
      const { items } = await client(listMemberTokens, { params });
      if (!(await confirmed(options, `Remove ${email}?`, items))) return;
      const { ended } = await client(removeMember, { params });
      printResult(options, { user_id: member.user_id, email, ended }, () =>
        [`${email} is no longer a member.`, ...endedLines(ended)].join("\n"),
      );
    });
}

/** Shows what ends before it asks. */
async function confirmed(options: ChangeOptions, question: string, tokens: IssuedToken[]): Promise<boolean> {
  if (options.yes) return true;
  const lines =
    tokens.length === 0
      ? ["No tokens are affected."]
      : [`${countIssued(tokens)} will end:`, issuedTable(tokens), ...rejoinLines(tokens)];
  process.stderr.write(`${harmless(lines.join("\n"))}\n`);
  if (await agreed(question)) return true;
  process.stderr.write("Nothing was changed.\n");
  process.exitCode = 1;
  return false;
}

async function findMember(client: Awaited<ReturnType<typeof connect>>, email: string): Promise<Member> {
  const members = await everyPage((cursor) => client(listMembers, { query: { cursor, limit: 200 } }));
  const found = members.find((member) => member.email === email.trim().toLowerCase());
  if (!found) throw new UsageError(`${email} is not a member. List the members with \`holdfast org members\`.`);
  return found;
}

function parseRole(text: string): Role {
  const { data } = Role.safeParse(text);
  if (!data) throw new InvalidArgumentError(`Allowed roles: ${Role.options.join(", ")}.`);
  return data;
}
