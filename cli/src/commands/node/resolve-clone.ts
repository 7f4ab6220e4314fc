// holdfast node resolve-clone: which of two machines with one identity keeps the node.

import type { Client } from "@holdfast/contracts/client";
import { type Explanation, explainNode } from "@holdfast/contracts/endpoints/drift";
import { resolveClone } from "@holdfast/contracts/endpoints/nodes";
import { UsageError } from "@holdfast/kit/settings";
import type { Command } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { findNode } from "../../client/find-node.ts";
import { printResult } from "../../output.ts";
import { agreed } from "../../prompt.ts";
import { describeClone, nameOfInstance } from "./describe-clone.ts";
import { howToJoin, reachableFrom } from "./token.ts";

type Clone = NonNullable<Explanation["clone"]>;
type Options = ServerOptions & { keep: string; yes?: boolean };

export function addResolveClone(node: Command): void {
  withServerOptions(node.command("resolve-clone"))
    .description("decide which of two machines with one identity keeps the node; the other one must be reimaged")
    .argument("<node>", "id or name")
    .requiredOption("--keep <instance>", "the machine to keep: its holder number or instance id in `node explain`")
    .option("--yes", "do not ask")
    .action(async (wanted: string, options: Options) => {
      const client = await connect(options);
      const { id, name } = await findNode(client, wanted);
      const clone = await cloneOf(client, { id, name });
      const kept = keptOf(clone, options.keep);
      const question = `Keep ${nameOfInstance(kept)} as ${name}? The certificates and tokens of both machines are revoked.`;
      if (!options.yes && !(await agreed(question))) {
        process.stderr.write("Nothing was changed.\n");
        process.exitCode = 1;
        return;
      }
      const created = await client(resolveClone, { params: { node_id: id }, body: { keep: kept.holder } });
      const others = clone.instances.filter((one) => one !== kept).map(nameOfInstance);
      printResult(options, created, () =>
        [
          `The certificates and tokens of both machines are revoked. Keep ${nameOfInstance(kept)}:`,
          ...howToJoin(created),
          ...reachableFrom(created),
          `Reimage ${others.join(" and ")} before it is used again.`,
          `When ${name} is online again: holdfast node reactivate ${name}`,
        ].join("\n"),
      );
    });
}

async function cloneOf(client: Client, { id, name }: { id: string; name: string }): Promise<Clone> {
  const { clone } = await client(explainNode, { params: { node_id: id } });
  if (!clone)
    throw new UsageError(
      `${name} is not used by two machines, as far as is known. See: holdfast node explain ${name}`,
    );
  return clone;
}

/** Instance ids are equal where a running machine was copied. */
function keptOf(clone: Clone, keep: string): Clone["instances"][number] {
  const found = clone.instances.filter(
    ({ holder, instance_id }) => String(holder) === keep || instance_id === keep,
  );
  const [only] = found;
  if (only && found.length === 1) return only;
  const problem = found.length > 1 ? `Both machines have the instance id ${keep}.` : `None of the two is ${keep}.`;
  throw new UsageError([problem, "Give --keep the number of a holder:", ...describeClone(clone)].join("\n"));
}
