// holdfast node: the nodes of an organization, from enrollment to retirement.

import { getAgentRelease } from "@holdfast/contracts/endpoints/agent-release";
import { getNode, listNodeDiagnostics, updateNode } from "@holdfast/contracts/endpoints/nodes";
import { adviceFor } from "@holdfast/contracts/reasons/advice";
import { titleOf } from "@holdfast/contracts/reasons/catalogue";
import { nodeReason, unknownReason } from "@holdfast/contracts/reasons/node";
import { Command } from "commander";
import {
  clientOf,
  connect,
  findServerAndOrg,
  type ServerOptions,
  withServerOptions,
} from "../../client/connect.ts";
import { findNode } from "../../client/find-node.ts";
import { localTime, printResult, table } from "../../output.ts";
import { bundleCommand } from "./bundle.ts";
import { addChanges } from "./changes.ts";
import { describeNode } from "./describe.ts";
import { addEvidence } from "./evidence.ts";
import { addExplain } from "./explain.ts";
import { addList } from "./list.ts";
import { addResolveClone } from "./resolve-clone.ts";
import { addSet } from "./set.ts";
import { tokenCommand } from "./token.ts";

export function nodeCommand(): Command {
  const node = new Command("node").description("nodes of an organization");
  node.addCommand(tokenCommand());
  node.addCommand(bundleCommand());
  addList(node);
  withServerOptions(node.command("show"))
    .description("show a node: host, heartbeat, certificate and problems")
    .argument("<node>", "id or name")
    .action(async (wanted: string, options: ServerOptions) => {
      const server = await findServerAndOrg(options);
      const client = clientOf(server);
      const { id } = await findNode(client, wanted);
      const detail = await client(getNode, { params: { node_id: id } });
      printResult(options, detail, () => describeNode(detail, server));
    });
  addExplain(node);
  addEvidence(node);
  withServerOptions(node.command("rename"))
    .description("rename a node")
    .argument("<node>", "id or name")
    .argument("<name>", "the new name, as a host name")
    .action(async (wanted: string, name: string, options: ServerOptions) => {
      const client = await connect(options);
      const { id, name: before } = await findNode(client, wanted);
      const renamed = await client(updateNode, { params: { node_id: id }, body: { name } });
      printResult(options, renamed, () => `Renamed ${before} to ${renamed.name}.`);
    });
  addSet(node);
  withServerOptions(node.command("diagnostics"))
    .description("list what the node's agent has recorded about itself, newest first")
    .argument("<node>", "id or name")
    .action(async (wanted: string, options: ServerOptions) => {
      const client = await connect(options);
      const { id, name } = await findNode(client, wanted);
      const answer = await client(listNodeDiagnostics, { params: { node_id: id } });
      printResult(options, answer, ({ items }) =>
        items.length === 0
          ? `The agent on ${name} has reported nothing. On the node, run: holdfast agent diagnose`
          : table(items, [
              { title: "time", of: (row) => localTime(row.at) },
              { title: "reason", of: (row) => `${titleOf(row.reason)} (${row.reason})` },
              {
                title: "what to do",
                of: (row) => adviceFor(name, (nodeReason(row.reason) ?? unknownReason).nextStep),
              },
              { title: "detail", of: (row) => row.detail },
            ]),
      );
    });
  withServerOptions(node.command("release"))
    .description("show the agent release of this server and the command that upgrades a node to it")
    .action(async (options: ServerOptions) => {
      const client = await connect(options);
      printResult(options, await client(getAgentRelease, {}), ({ version, archives, upgrade_command }) =>
        [
          upgrade_command,
          `Run this as root on a node. It upgrades the agent to ${version}, and rolls back automatically if that version does not work there.`,
          ...archives.map(
            ({ arch, sha256, bytes }) => `${arch}: ${Math.round(bytes / 1024 ** 2)} MiB, SHA-256 ${sha256}`,
          ),
        ].join("\n"),
      );
    });
  addChanges(node);
  addResolveClone(node);
  return node;
}
