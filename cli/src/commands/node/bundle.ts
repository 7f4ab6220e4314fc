// holdfast node bundle: signed files that bring a node back when it cannot recover by itself. On the host they are applied
// with `holdfast agent bundle apply`.

import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { CallError } from "@holdfast/contracts/call-error";
import type { Client } from "@holdfast/contracts/client";
import type { AnswerOf } from "@holdfast/contracts/endpoint";
import {
  type BundleSummary,
  bundleMinutes,
  createBundle,
  listBundles,
  listNodesWithoutToken,
  revokeBundle,
} from "@holdfast/contracts/endpoints/bundles";
import { bundleStateTitles } from "@holdfast/contracts/words/state-titles";
import { writeFileDurably } from "@holdfast/kit/files";
import { UsageError } from "@holdfast/kit/settings";
import { Command } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { findNode } from "../../client/find-node.ts";
import { everyPage } from "../../client/pages.ts";
import { exitCodes } from "../../failure.ts";
import { localTime, printResult, table } from "../../output.ts";
import { minutesOf } from "../minutes.ts";

type CreateOptions = ServerOptions & { allWithoutToken?: boolean; out: string; expires?: number };
type Created = AnswerOf<typeof createBundle>;

export function bundleCommand(): Command {
  const bundle = new Command("bundle").description(
    "recovery bundles, for nodes that cannot recover by themselves",
  );
  withServerOptions(bundle.command("create"))
    .description("write a recovery bundle for a node to a file, and print how to apply it")
    .argument("[node]", "id or name")
    .option("--all-without-token", "one file for each node that has no current recovery token")
    .option("--out <dir>", "directory of the files", ".")
    .option("--expires <time>", "such as 90 (minutes), 12h or 7d; default: 24h, at most 7d", minutesOf)
    .action(async (wanted: string | undefined, options: CreateOptions) => {
      checkOptions(wanted, options);
      const client = await connect(options);
      if (wanted === undefined) return createAll(client, options);
      const node = await findNode(client, wanted);
      const { file, created } = await createFile(client, node.id, options);
      const { bundle: _, ...shown } = created;
      printResult(options, { ...shown, file }, () => howToApply(created, file).join("\n"));
    });
  withServerOptions(bundle.command("list"))
    .description("list recovery bundles, newest first")
    .action(async (options: ServerOptions) => {
      const client = await connect(options);
      const items = await everyPage((cursor) => client(listBundles, { query: { cursor, limit: 200 } }));
      printResult(options, { items }, () =>
        items.length === 0
          ? "No recovery bundles yet."
          : table(items, [
              { title: "id", of: (row) => row.id },
              { title: "node", of: (row) => row.node_name },
              { title: "created by", of: (row) => row.created_by },
              { title: "state", of: stateOf },
              { title: "applied on the host", of: (row) => localTime(row.applied_at) ?? "not reported" },
              { title: "correlation id", of: (row) => row.correlation_id },
            ]),
      );
    });
  withServerOptions(bundle.command("revoke"))
    .description("revoke a recovery bundle; a node that was recovered with it is not affected")
    .argument("<id>")
    .action(async (id: string, options: ServerOptions) => {
      const client = await connect(options);
      await client(revokeBundle, { params: { bundle_id: id } });
      printResult(options, { id, revoked: true }, () => `Recovery bundle ${id} revoked.`);
    });
  return bundle;
}

function checkOptions(wanted: string | undefined, { allWithoutToken, expires = 0 }: CreateOptions): void {
  if ((wanted === undefined) !== (allWithoutToken === true)) {
    throw new UsageError("Name one node, or use --all-without-token for all nodes that need a bundle.");
  }
  if (expires > bundleMinutes.most) throw new UsageError("--expires is too long: a bundle works for at most 7d.");
}

async function createFile(
  client: Client,
  nodeId: string,
  { out, expires }: CreateOptions,
): Promise<{ file: string; created: Created }> {
  mkdirSync(out, { recursive: true, mode: 0o700 });
  const created = await client(createBundle, {
    params: { node_id: nodeId },
    body: { expires_in_minutes: expires },
  });
  const file = join(resolve(out), `${created.node_name}.bundle-${created.seq}.json`);
  // It contains a secret.
  writeFileDurably(file, `${JSON.stringify(created.bundle, null, 2)}\n`, 0o600);
  return { file, created };
}

/** A node that is refused does not stop the others. */
async function createAll(client: Client, options: CreateOptions): Promise<void> {
  const nodes = await everyPage((cursor) => client(listNodesWithoutToken, { query: { cursor, limit: 200 } }));
  const written: { node_id: string; node_name: string; id: string; file: string; expires_at: string }[] = [];
  const failed: { node_id: string; node_name: string; code: string }[] = [];
  let rootSha256: string | null = null;
  for (const { node_id, node_name } of nodes) {
    try {
      const { file, created } = await createFile(client, node_id, options);
      rootSha256 = created.root_sha256;
      written.push({ node_id, node_name, id: created.id, file, expires_at: created.expires_at });
    } catch (error) {
      if (!(error instanceof CallError) || error.envelope.retryable) throw error;
      failed.push({ node_id, node_name, code: error.envelope.code });
    }
  }
  printResult(options, { root_sha256: rootSha256, written, failed }, () =>
    [
      `${written.length} bundles written to ${resolve(options.out)}. They contain secrets: each works once, on its own node.`,
      ...(rootSha256 === null
        ? []
        : [
            "On each host, as root: holdfast agent bundle apply <file>",
            `SHA-256 of the root, for hosts that cannot verify it (--root-sha256): ${rootSha256}`,
          ]),
      ...failed.map(({ node_name, code }) => `No bundle for ${node_name}: ${code}.`),
    ].join("\n"),
  );
  if (failed.length > 0) process.exitCode = exitCodes.failed;
}

function howToApply({ node_id, node_name, expires_at, root_sha256, line }: Created, file: string): string[] {
  return [
    `Wrote ${file}. It contains a secret, works once, only for ${node_name}, and expires ${localTime(expires_at)}.`,
    `Copy it to ${node_name} and run there, as root: holdfast agent bundle apply <file>`,
    `If that host cannot verify it, add: --root-sha256 ${root_sha256}`,
    `If that host lost its state directory, add: --new-state --node ${node_id}`,
    "Or paste this on the host instead of copying the file:",
    `holdfast agent bundle apply --line ${line}`,
  ];
}

function stateOf({ state, expires_at, used_at }: BundleSummary): string {
  if (state === "created") return `valid until ${localTime(expires_at)}`;
  const { title } = bundleStateTitles[state];
  return state === "used" ? `${title.toLowerCase()} ${localTime(used_at)}` : title.toLowerCase();
}
