// holdfast node token: what turns a machine into a node: once (pairing), or again and again (bootstrap).

import type { Client } from "@holdfast/contracts/client";
import type { AnswerOf, BodyInputOf } from "@holdfast/contracts/endpoint";
import {
  createEnrollmentToken,
  type EnrollmentToken,
  listEnrollmentTokens,
  revokeEnrollmentToken,
  tokenMinutes,
} from "@holdfast/contracts/endpoints/enrollment";
import { UsageError } from "@holdfast/kit/settings";
import { Command, Option } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { findNode, isNodeId } from "../../client/find-node.ts";
import { everyPage } from "../../client/pages.ts";
import { localTime, printResult, table } from "../../output.ts";
import { minutesOf } from "../minutes.ts";

type CreateOptions = ServerOptions & { bootstrap?: boolean; node?: string; name?: string; expires?: number };
type NewToken = BodyInputOf<typeof createEnrollmentToken>;

export function tokenCommand(): Command {
  const token = new Command("token").description("tokens that make a machine a node");
  withServerOptions(token.command("create"))
    .description("make a token and print how to use it")
    .option("--bootstrap", "for one node, to be used by its machine again and again; needs --node")
    .option(
      "--node <id or name>",
      "take this node back in with a new key, instead of making a new one; with --bootstrap it need not exist yet",
    )
    .addOption(
      new Option("--name <name>", "what the new node is called; left out, its host name").conflicts([
        "node",
        "bootstrap",
      ]),
    )
    .option(
      "--expires <time>",
      "such as 90 (minutes), 12h or 30d; left out, 15 minutes, or 30d with --bootstrap",
      minutesOf,
    )
    .action(async (options: CreateOptions) => {
      checkExpiry(options);
      const client = await connect(options);
      const created = await client(createEnrollmentToken, {
        body: {
          ...(options.bootstrap ? await bootstrapFor(client, options.node) : await pairingFor(client, options)),
          expires_in_minutes: options.expires,
        },
      });
      printResult(options, created, () =>
        [
          ...(options.bootstrap ? howToKeep(created) : howToJoin(created)),
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
              { title: "kind", of: (row) => row.kind },
              { title: "made by", of: (row) => row.created_by },
              { title: "for node", of: forNode },
              { title: "state", of: stateOf },
              { title: "last used", of: (row) => localTime(row.used_at) ?? "never" },
              { title: "uses", of: (row) => String(row.uses) },
              { title: "became node", of: (row) => row.enrolled_node_id },
            ]),
      );
    });
  withServerOptions(token.command("revoke"))
    .description("revoke an enrollment token; a node that has joined with it keeps its identity")
    .argument("<id>")
    .action(async (id: string, options: ServerOptions) => {
      const client = await connect(options);
      await client(revokeEnrollmentToken, { params: { token_id: id } });
      printResult(options, { id, revoked: true }, () => `Enrollment token ${id} is revoked.`);
    });
  return token;
}

function checkExpiry({ bootstrap, expires = 0 }: CreateOptions): void {
  if (bootstrap && expires > tokenMinutes.bootstrap.most) {
    throw new UsageError("A bootstrap token works for a year at most: give --expires 365d or less.");
  }
  if (!bootstrap && expires > tokenMinutes.pairing.most) {
    throw new UsageError("A token that works once does so for a day at most: give --expires 24h or less.");
  }
}

async function pairingFor(client: Client, { node, name }: CreateOptions): Promise<NewToken> {
  return node === undefined ? { node_name: name } : { node_id: (await findNode(client, node)).id };
}

/** By name the server finds it, or keeps the name for it. */
async function bootstrapFor(client: Client, node: string | undefined): Promise<NewToken> {
  if (node === undefined) {
    throw new UsageError(
      "A bootstrap token belongs to one node: say which with --node <name>; it need not exist yet.",
    );
  }
  return isNodeId(node)
    ? { kind: "bootstrap", node_id: (await findNode(client, node)).id }
    : { kind: "bootstrap", node_name: node };
}

type Created = AnswerOf<typeof createEnrollmentToken>;

function howToJoin({ install_command, join_command, node_name, node_id, expires_at }: Created): string[] {
  const machine = node_id ? `the machine that is ${node_name}` : "the machine that shall become a node";
  const once = `It works once, until ${localTime(expires_at)}.`;
  if (install_command === null)
    return [join_command, `Run it on ${machine}, with a checkout of Holdfast. ${once}`];
  return [
    install_command,
    `Run it as root on ${machine}: it downloads, checks, installs and starts the agent. ${once}`,
    `With a checkout of Holdfast, also without root, this alone joins: ${join_command}`,
  ];
}

function howToKeep({ install_command, token, api_url, node_name, expires_at }: Created): string[] {
  return [
    `HOLDFAST_BOOTSTRAP_TOKEN=${token}`,
    `HOLDFAST_NODE_API_URL=${api_url}`,
    `Put these lines into the environment of \`holdfast agent run\` on ${node_name}, in a file that only its user can read.`,
    `Whenever that machine has no identity it joins with it as ${node_name}, and the identity before ends. ` +
      `It works until ${localTime(expires_at)} and is not shown again.`,
    ...(install_command === null
      ? []
      : ["Or let this line install the agent there with it, as root:", install_command]),
  ];
}

function forNode({ kind, node_id, node_name }: EnrollmentToken): string {
  if (node_id || kind === "bootstrap") return node_name ?? node_id ?? "–";
  return node_name ? `a new one, ${node_name}` : "a new one";
}

function stateOf(token: EnrollmentToken): string {
  if (token.kind === "pairing" && token.used_at) return "used";
  if (token.revoked_at) return `revoked ${localTime(token.revoked_at)}`;
  return Date.parse(token.expires_at) < Date.now() ? "expired" : `until ${localTime(token.expires_at)}`;
}
