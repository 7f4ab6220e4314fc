// holdfast node token: tokens that enroll a machine as a node, once (pairing) or repeatedly (bootstrap).

import type { Client } from "@holdfast/contracts/client";
import type { AnswerOf, BodyInputOf } from "@holdfast/contracts/endpoint";
import {
  createEnrollmentToken,
  type EnrollmentToken,
  listEnrollmentTokens,
  revokeEnrollmentToken,
  tokenMinutes,
} from "@holdfast/contracts/endpoints/enrollment";
import { revokeRecoveryTokens } from "@holdfast/contracts/endpoints/recovery";
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
  const token = new Command("token").description("enrollment tokens");
  withServerOptions(token.command("create"))
    .description("create a token and print how to use it")
    .option("--bootstrap", "reusable token for one node; requires --node")
    .option(
      "--node <id or name>",
      "give this node a new identity instead of creating a node; with --bootstrap it need not exist yet",
    )
    .addOption(
      new Option("--name <name>", "name of the new node; default: its host name").conflicts(["node", "bootstrap"]),
    )
    .option("--expires <time>", "such as 90 (minutes), 12h or 30d; default: 15m, with --bootstrap 30d", minutesOf)
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
        [...(options.bootstrap ? howToKeep(created) : howToJoin(created)), ...reachableFrom(created)].join("\n"),
      );
    });
  withServerOptions(token.command("revoke-recovery"))
    .description("revoke the recovery tokens of a node; while it is connected it gets a new one")
    .argument("<node>", "id or name")
    .action(async (wanted: string, options: ServerOptions) => {
      const client = await connect(options);
      const { id, name } = await findNode(client, wanted);
      const answer = await client(revokeRecoveryTokens, { params: { node_id: id } });
      printResult(options, answer, ({ revoked }) =>
        revoked === 0
          ? `${name} has no recovery token that works.`
          : `The recovery tokens of ${name} are revoked.`,
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
              { title: "created by", of: (row) => row.created_by },
              { title: "for node", of: forNode },
              { title: "state", of: stateOf },
              { title: "last used", of: (row) => localTime(row.used_at) ?? "never" },
              { title: "uses", of: (row) => String(row.uses) },
              { title: "enrolled node", of: (row) => row.enrolled_node_id },
            ]),
      );
    });
  withServerOptions(token.command("revoke"))
    .description("revoke an enrollment token; a node that is already enrolled with it is not affected")
    .argument("<id>")
    .action(async (id: string, options: ServerOptions) => {
      const client = await connect(options);
      await client(revokeEnrollmentToken, { params: { token_id: id } });
      printResult(options, { id, revoked: true }, () => `Enrollment token ${id} revoked.`);
    });
  return token;
}

function checkExpiry({ bootstrap, expires = 0 }: CreateOptions): void {
  if (bootstrap && expires > tokenMinutes.bootstrap.most) {
    throw new UsageError("--expires is too long: a bootstrap token is valid for at most 365d.");
  }
  if (!bootstrap && expires > tokenMinutes.pairing.most) {
    throw new UsageError(
      "--expires is too long: a one-time token is valid for at most 24h. For a reusable token, add --bootstrap.",
    );
  }
}

async function pairingFor(client: Client, { node, name }: CreateOptions): Promise<NewToken> {
  return node === undefined ? { node_name: name } : { node_id: (await findNode(client, node)).id };
}

/** By name the server finds it, or keeps the name for it. */
async function bootstrapFor(client: Client, node: string | undefined): Promise<NewToken> {
  if (node === undefined) {
    throw new UsageError("--bootstrap requires --node <name>. The node need not exist yet.");
  }
  return isNodeId(node)
    ? { kind: "bootstrap", node_id: (await findNode(client, node)).id }
    : { kind: "bootstrap", node_name: node };
}

type Created = AnswerOf<typeof createEnrollmentToken>;

/** Nothing, where other machines can reach the server, too. */
export function reachableFrom({ only_this_machine, api_url }: Created): string[] {
  if (!only_this_machine) return [];
  return [
    `Only this machine can reach ${api_url}. For other machines, set HOLDFAST_NODE_API_BIND and HOLDFAST_NODE_API_URL.`,
  ];
}

export function howToJoin({ install_command, join_command, node_name, node_id, expires_at }: Created): string[] {
  const machine = node_id ? `the machine of ${node_name}` : "the new machine";
  const once = `It works once and expires ${localTime(expires_at)}.`;
  if (install_command === null)
    return [join_command, `Run this on ${machine}, in a checkout of Holdfast. ${once}`];
  return [
    install_command,
    `Run this as root on ${machine}. It downloads, verifies, installs and starts the agent. ${once}`,
    `In a checkout of Holdfast, also without root, run instead: ${join_command}`,
  ];
}

function howToKeep({ install_command, token, api_url, node_name, expires_at }: Created): string[] {
  return [
    `HOLDFAST_BOOTSTRAP_TOKEN=${token}`,
    `HOLDFAST_NODE_API_URL=${api_url}`,
    `Add these two variables to the environment of \`holdfast agent run\` on ${node_name}, in a file that only its user can read.`,
    `Whenever that machine has no identity, it enrolls as ${node_name} with this token, and its previous identity is revoked. ` +
      `The token expires ${localTime(expires_at)} and is not shown again.`,
    ...(install_command === null
      ? []
      : ["Or install the agent there with this command, as root:", install_command]),
  ];
}

function forNode({ kind, node_id, node_name }: EnrollmentToken): string {
  if (node_id || kind === "bootstrap") return node_name ?? node_id ?? "–";
  return node_name ? `new node ${node_name}` : "new node";
}

function stateOf(token: EnrollmentToken): string {
  if (token.kind === "pairing" && token.used_at) return "used";
  if (token.revoked_at) return `revoked ${localTime(token.revoked_at)}`;
  return Date.parse(token.expires_at) < Date.now() ? "expired" : `valid until ${localTime(token.expires_at)}`;
}
