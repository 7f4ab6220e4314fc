// holdfast org list, create, rename, members, invite. What ends tokens is in members.ts.

import { inviteMember, listMembers } from "@holdfast/contracts/endpoints/members";
import {
  createOrganization,
  listOrganizations,
  updateOrganization,
} from "@holdfast/contracts/endpoints/organizations";
import { Role } from "@holdfast/contracts/public/permissions";
import { UsageError } from "@holdfast/kit/settings";
import { Command, Option } from "commander";
import {
  clientOf,
  connect,
  findServer,
  findServerAndOrg,
  type ServerOptions,
  withServerOptions,
} from "../../client/connect.ts";
import { everyPage } from "../../client/pages.ts";
import { localTime, printResult, table } from "../../output.ts";
import { addMemberCommands } from "./members.ts";

export function orgCommand(): Command {
  const org = new Command("org").description("organizations and their members");
  org
    .command("list")
    .description("list the organizations you can act in")
    .option("--local", "use the server on this machine, even when signed in to another")
    .option("--json", "print JSON")
    .action(async (options: ServerOptions) => {
      const client = clientOf({ ...findServer(options), orgId: undefined });
      const items = await everyPage((cursor) => client(listOrganizations, { query: { cursor, limit: 200 } }));
      printResult(options, { items }, () =>
        table(items, [
          { title: "slug", of: (row) => row.slug },
          { title: "name", of: (row) => row.name },
          { title: "id", of: (row) => row.id },
          { title: "created", of: (row) => localTime(row.created_at) },
        ]),
      );
    });
  org
    .command("create")
    .description("create an organization (platform operator)")
    .argument("<slug>", "2 to 40 lower-case letters, digits and hyphens")
    .option("--name <name>", "display name; default: the slug")
    .option("--local", "use the server on this machine, even when signed in to another")
    .option("--json", "print JSON")
    .action(async (slug: string, options: ServerOptions & { name?: string }) => {
      const client = clientOf({ ...findServer(options), orgId: undefined });
      const created = await client(createOrganization, { body: { slug, name: options.name ?? slug } });
      printResult(options, created, () => `Organization ${created.slug} created (${created.id}).`);
    });
  withServerOptions(org.command("rename"))
    .description("change an organization's name; the slug does not change")
    .argument("<name>")
    .action(async (name: string, options: ServerOptions) => {
      const server = await findServerAndOrg(options);
      if (!server.orgId) throw new UsageError("You are not a member of any organization.");
      const renamed = await clientOf(server)(updateOrganization, {
        params: { org_id: server.orgId },
        body: { name },
      });
      printResult(options, renamed, () => `Renamed ${renamed.slug} to ${renamed.name}.`);
    });
  withServerOptions(org.command("members"))
    .description("list the members of an organization")
    .action(async (options: ServerOptions) => {
      const client = await connect(options);
      const items = await everyPage((cursor) => client(listMembers, { query: { cursor, limit: 200 } }));
      printResult(options, { items }, () =>
        items.length === 0
          ? "No members yet. Invite an owner: holdfast org invite <email> --role owner"
          : table(items, [
              { title: "email", of: (row) => row.email },
              { title: "name", of: (row) => row.name },
              { title: "role", of: (row) => row.role },
              { title: "since", of: (row) => localTime(row.joined_at) },
            ]),
      );
    });
  withServerOptions(org.command("invite"))
    .description("create a one-time invitation link")
    .argument("<email>")
    .addOption(new Option("--role <role>").choices(Role.options).default("member"))
    .action(async (email: string, options: ServerOptions & { role: Role }) => {
      const client = await connect(options);
      const invitation = await client(inviteMember, { body: { email, role: options.role } });
      printResult(
        options,
        invitation,
        () =>
          `${invitation.url}\nSend this link to ${invitation.email}. It works once and expires ${localTime(invitation.expires_at)}.`,
      );
    });
  addMemberCommands(org);
  return org;
}
