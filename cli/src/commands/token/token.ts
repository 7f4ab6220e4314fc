// holdfast token create, list, revoke.

import { createToken, listTokens, revokeToken } from "@holdfast/contracts/endpoints/tokens";
import { Role, Scope } from "@holdfast/contracts/public/permissions";
import { Command, InvalidArgumentError, Option } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { everyPage } from "../../client/pages.ts";
import { localTime, printResult, table } from "../../output.ts";
import { endedLines } from "../issued.ts";

type CreateOptions = ServerOptions & { name: string; role: Role; scope?: Scope[]; expires?: number };

export function tokenCommand(): Command {
  const token = new Command("token").description("API tokens of an organization");
  withServerOptions(token.command("create"))
    .description("create a token; it is shown once")
    .requiredOption("--name <name>", "what it is for")
    .addOption(new Option("--role <role>", "maximum permissions").choices(Role.options).default("member"))
    .addOption(new Option("--scope <scope...>", "restrict it to these scopes").choices(Scope.options))
    .option("--expires <days>", "days until it expires; default: never", wholeDays)
    .action(async (options: CreateOptions) => {
      const client = await connect(options);
      const { name, role, scope: scopes, expires } = options;
      const created = await client(createToken, { body: { name, role, scopes, expires_in_days: expires } });
      printResult(
        options,
        created,
        () => `${created.token}\nSave it now: only its hash is stored, and it is not shown again.`,
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
              { title: "created by", of: (row) => row.created_by },
              { title: "last used", of: (row) => localTime(row.last_used_at) ?? "never" },
              { title: "state", of: (row) => stateOf(row) },
            ]),
      );
    });
  withServerOptions(token.command("revoke"))
    .description("revoke a token and everything created with it, immediately")
    .argument("<id>")
    .action(async (id: string, options: ServerOptions) => {
      const client = await connect(options);
      const { ended } = await client(revokeToken, { params: { token_id: id } });
      const others = ended.filter((token) => token.id !== id);
      printResult(options, { id, revoked: true, ended }, () =>
        [`Token ${id} revoked.`, ...endedLines(others)].join("\n"),
      );
    });
  return token;
}

function stateOf(token: { revoked_at: string | null; expires_at: string | null }): string {
  if (token.revoked_at) return `revoked ${localTime(token.revoked_at)}`;
  if (!token.expires_at) return "active";
  return new Date(token.expires_at) < new Date() ? "expired" : `valid until ${localTime(token.expires_at)}`;
}

function wholeDays(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError("Use a whole number of days.");
  return Number(text);
}
