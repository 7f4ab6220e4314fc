// holdfast node token: what turns a machine into a node, once.

import {
  createEnrollmentToken,
  type EnrollmentToken,
  listEnrollmentTokens,
  revokeEnrollmentToken,
} from "@holdfast/contracts/endpoints/enrollment";
import { integer } from "@holdfast/kit/settings";
import { Command, InvalidArgumentError, Option } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { findNode } from "../../client/find-node.ts";
import { everyPage } from "../../client/pages.ts";
import { localTime, printResult, table } from "../../output.ts";

type CreateOptions = ServerOptions & { node?: string; name?: string; expires?: number };

export function tokenCommand(): Command {
  const token = new Command("token").description("tokens that make a machine a node, each once");
  withServerOptions(token.command("create"))
    .description("make a token and print the command that uses it")
    .option("--node <id or name>", "take this node back in with a new key, instead of making a new one")
    .addOption(
      new Option("--name <name>", "what the new node is called; left out, its host name").conflicts("node"),
    )
    .option("--expires <minutes>", "1 to 1440; left out, 15", wholeMinutes)
    .action(async (options: CreateOptions) => {
      const client = await connect(options);
      const node = options.node === undefined ? undefined : await findNode(client, options.node);
      const created = await client(createEnrollmentToken, {
        body: { node_id: node?.id, node_name: options.name, expires_in_minutes: options.expires },
      });
      printResult(options, created, () =>
        [
          created.join_command,
          `Run it on ${node ? `the machine that is ${node.name}` : "the machine that shall become a node"}. ` +
            `It works once, until ${localTime(created.expires_at)}.`,
          ...(created.only_this_machine
            ? [
                `Only this machine reaches ${created.api_url}: for others, set HOLDFAST_NODE_API_BIND and HOLDFAST_NODE_API_URL.`,
              ]
            : []),
        ].join("\n"),
      );
    });
  withServerOptions(token.command("list"))
    .description("list enrollment tokens, newest first")
    .action(async (options: ServerOptions) => {
      const client = await connect(options);
      const items = await everyPage((cursor) => client(listEnrollmentTokens, { query: { cursor, limit: 200 } }));
      printResult(options, { items }, () =>
        items.length === 0
          ? "No enrollment tokens yet."
          : table(items, [
              { title: "id", of: (row) => row.id },
              { title: "made by", of: (row) => row.created_by },
              { title: "for node", of: (row) => row.node_id ?? "a new one" },
              { title: "state", of: (row) => stateOf(row) },
              { title: "became node", of: (row) => row.enrolled_node_id },
            ]),
      );
    });
  withServerOptions(token.command("revoke"))
    .description("revoke an enrollment token that was not used yet")
    .argument("<id>")
    .action(async (id: string, options: ServerOptions) => {
      const client = await connect(options);
      await client(revokeEnrollmentToken, { params: { token_id: id } });
      printResult(options, { id, revoked: true }, () => `Enrollment token ${id} is revoked.`);
    });
  return token;
}

function stateOf(token: EnrollmentToken): string {
  if (token.used_at) return `used ${localTime(token.used_at)}`;
  if (token.revoked_at) return `revoked ${localTime(token.revoked_at)}`;
  return Date.parse(token.expires_at) < Date.now() ? "expired" : `until ${localTime(token.expires_at)}`;
}

function wholeMinutes(text: string): number {
  const minutes = integer({ min: 1, max: 1440 }).parse(text);
  if (minutes === undefined) throw new InvalidArgumentError("Give a whole number of minutes from 1 to 1440.");
  return minutes;
}
