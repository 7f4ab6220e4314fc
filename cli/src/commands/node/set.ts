// holdfast node set: what an operator knows about a node's place better than its agent.

import { updateNode } from "@holdfast/contracts/endpoints/nodes";
import { UsageError } from "@holdfast/kit/settings";
import type { Command } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { findNode } from "../../client/find-node.ts";
import { printResult } from "../../output.ts";

type Options = ServerOptions & { provider?: string; networkSide?: string };

export function addSet(node: Command): void {
  withServerOptions(node.command("set"))
    .description("set a node's provider or network side, instead of what its agent reports")
    .argument("<node>", "id or name")
    .option("--provider <name>", 'whose machine it is; "" returns to what the agent reports')
    .option("--network-side <name>", 'where it is in the network; "" returns to what the agent reports')
    .action(async (wanted: string, options: Options) => {
      const { provider, networkSide } = options;
      if (provider === undefined && networkSide === undefined) {
        throw new UsageError("Nothing to set. Give at least one of --provider, --network-side.");
      }
      const body = {
        ...(provider === undefined ? {} : { provider: provider || null }),
        ...(networkSide === undefined ? {} : { network_side: networkSide || null }),
      };
      const client = await connect(options);
      const { id } = await findNode(client, wanted);
      const updated = await client(updateNode, { params: { node_id: id }, body });
      const { name, provider: now, network_side: side } = updated;
      printResult(
        options,
        updated,
        () => `${name}: provider ${now ?? "not set"}, network side ${side ?? "not set"}.`,
      );
    });
}
