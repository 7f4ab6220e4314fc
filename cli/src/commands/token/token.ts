// holdfast token create, list, revoke.

import { createToken, listTokens, revokeToken } from "@holdfast/contracts/endpoints/tokens";
import { Role, Scope } from "@holdfast/contracts/permissions";
import { Command, InvalidArgumentError, Option } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { everyPage } from "../../client/pages.ts";
import { localTime, printResult, table } from "../../output.ts";
import { endedLines } from "../issued.ts";

type CreateOptions = ServerOptions & { name: string; role: Role; scope?: Scope[]; expires?: number };

export function tokenCommand(): Command {
  const token = new Command("token").description("API tokens of an organization");
  withServerOptions(token.command("create"))
    .description("make a token; it is shown once")
    .requiredOption("--name <name>", "what it is for")
    .addOption(new Option("--role <role>", "what it may do at most").choices(Role.options).default("member"))
    .addOption(new Option("--scope <scope...>", "narrow it to these scopes").choices(Scope.options))
    .option("--expires <days>", "stop working after so many days", wholeDays)
    .action(async (options: CreateOptions) => {
      const client = await connect(options);
      const { name, role, scope: scopes, expires } = options;
      const created = await client(createToken, { body: { name, role, scopes, expires_in_days: expires } });
      printResult(
        options,
        created,
        () => `${created.token}\nKeep it now: it is stored as a hash and not shown again.`,
      );
    });
  withServerOptions(token.command("list"))
    .description("list tokens, newest first")
    .action(async (options: ServerOptions) => {
      const client = await connect(options);
      const items = await everyPage((cursor) => client(listTokens, { query: { cursor, limit: 200 } }));
      printResult(options, { items }, () =>
        items.length === 0
          ? "No tokens yet."
          : table(items, [
              { title: "id", of: (row) => row.id },
              { title: "name", of: (row) => row.name },
              { title: "role", of: (row) => row.role + (row.scopes ? ` (${row.scopes.join(" ")})` : "") },
              { title: "made by", of: (row) => row.created_by },
              { title: "last used", of: (row) => localTime(row.last_used_at) ?? "never" },
              { title: "state", of: (row) => stateOf(row) },
            ]),
      );
    });
  withServerOptions(token.command("revoke"))
    .description("revoke a token and everything made with it, at once")
    .argument("<id>")
    .action(async (id: string, options: ServerOptions) => {
      const client = await connect(options);
      const { ended } = await client(revokeToken, { params: { token_id: id } });
      const others = ended.filter((token) => token.id !== id);
      printResult(options, { id, revoked: true, ended }, () =>
        [`Token ${id} is revoked.`, ...endedLines(others)].join("\n"),
      );
    });
  return token;
}

function stateOf(token: { revoked_at: string | null; expires_at: string | null }): string {
  if (token.revoked_at) return `revoked ${localTime(token.revoked_at)}`;
  if (!token.expires_at) return "active";
  return new Date(token.expires_at) < new Date() ? "expired" : `until ${localTime(token.expires_at)}`;
}

function wholeDays(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError("Give a whole number of days.");
  return Number(text);
}
