// holdfast node: the machines of an organization, and how they become and cease to be ones.

import { getAgentRelease } from "@holdfast/contracts/endpoints/agent-release";
import { getNode, listNodeDiagnostics, renameNode } from "@holdfast/contracts/endpoints/nodes";
import { titleOf } from "@holdfast/contracts/reasons/catalogue";
import { diagnosticReasons } from "@holdfast/contracts/reasons/node";
import { Command } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { findNode } from "../../client/find-node.ts";
import { localTime, printResult, table } from "../../output.ts";
import { addChanges } from "./changes.ts";
import { describeNode } from "./describe.ts";
import { addList } from "./list.ts";
import { tokenCommand } from "./token.ts";

export function nodeCommand(): Command {
  const node = new Command("node").description("the machines of an organization");
  node.addCommand(tokenCommand());
  addList(node);
  withServerOptions(node.command("show"))
    .description("show a node: facts, heartbeat, certificate, and what needs attention")
    .argument("<node>", "id or name")
    .action(async (wanted: string, options: ServerOptions) => {
      const client = await connect(options);
      const { id } = await findNode(client, wanted);
      const detail = await client(getNode, { params: { node_id: id } });
      printResult(options, detail, describeNode);
    });
  withServerOptions(node.command("rename"))
    .description("give a node another name")
    .argument("<node>", "id or name")
    .argument("<name>", "the new name, as a host name")
    .action(async (wanted: string, name: string, options: ServerOptions) => {
      const client = await connect(options);
      const { id, name: before } = await findNode(client, wanted);
      const renamed = await client(renameNode, { params: { node_id: id }, body: { name } });
      printResult(options, renamed, () => `${before} is now called ${renamed.name}.`);
    });
  withServerOptions(node.command("diagnostics"))
    .description("what the node's agent has noted about its own health, newest first")
    .argument("<node>", "id or name")
    .action(async (wanted: string, options: ServerOptions) => {
      const client = await connect(options);
      const { id, name } = await findNode(client, wanted);
      const answer = await client(listNodeDiagnostics, { params: { node_id: id } });
      printResult(options, answer, ({ items }) =>
        items.length === 0
          ? `The agent on ${name} has delivered no records. On the machine itself: holdfast agent diagnose`
          : table(items, [
              { title: "time", of: (row) => localTime(row.at) },
              { title: "reason", of: (row) => `${titleOf(row.reason)} (${row.reason})` },
              {
                title: "what to do",
                of: (row) => diagnosticReasons[row.reason].nextStep.replaceAll("<id>", name),
              },
              { title: "detail", of: (row) => row.detail },
            ]),
      );
    });
  withServerOptions(node.command("release"))
    .description("the agent that this server hands out, and the line that upgrades a node to it")
    .action(async (options: ServerOptions) => {
      const client = await connect(options);
      printResult(options, await client(getAgentRelease, {}), ({ version, archives, upgrade_command }) =>
        [
          upgrade_command,
          `Run it as root on a node: its agent becomes ${version}, and goes back by itself if that does not work there.`,
          ...archives.map(
            ({ arch, sha256, bytes }) => `${arch}: ${Math.round(bytes / 1e6)} MB, SHA-256 ${sha256}`,
          ),
        ].join("\n"),
      );
    });
  addChanges(node);
  return node;
}
