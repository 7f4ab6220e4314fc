// holdfast node drain, fence, reactivate, revoke, retire.

import { changeNode, type NodeChange } from "@holdfast/contracts/endpoints/nodes";
import type { Command } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { findNode } from "../../client/find-node.ts";
import { printResult } from "../../output.ts";
import { agreed } from "../../prompt.ts";

type Change = {
  summary: string;
  /** Of what cannot simply be taken back, asked before it is done. */
  question?: string;
  done: (name: string) => string;
};

const changes: Record<NodeChange, Change> = {
  drain: {
    summary: "give a node no new tasks; running ones end",
    done: (name) => `${name} gets no new tasks; \`holdfast node reactivate ${name}\` ends that.`,
  },
  fence: {
    summary: "set a node aside at once: it gets nothing until reactivated",
    done: (name) => `${name} is set aside; \`holdfast node reactivate ${name}\` takes it back.`,
  },
  reactivate: {
    summary: "let a drained or fenced node work again",
    done: (name) => `${name} works again.`,
  },
  revoke: {
    summary: "end a node's identity at once; it needs a new token to come back",
    question: "Its certificates end at once, and it comes back only with a new token.",
    done: (name) =>
      `${name} is revoked. To take it back: \`holdfast node token create --node ${name}\`, then reactivate it.`,
  },
  retire: {
    summary: "remove a node for ever",
    question: "This is for ever: the machine can come back only as a new node.",
    done: (name) => `${name} is retired.`,
  },
};

type ChangeOptions = ServerOptions & { reason?: string; yes?: boolean };

export function addChanges(node: Command): void {
  for (const [change, { summary, question, done }] of Object.entries(changes) as [NodeChange, Change][]) {
    const command = withServerOptions(node.command(change))
      .description(summary)
      .argument("<node>", "id or name")
      .option("--reason <text>", "why; the node's page and agent show it")
      .action(async (wanted: string, options: ChangeOptions) => {
        const client = await connect(options);
        const { id, name } = await findNode(client, wanted);
        if (question && !options.yes && !(await agreed(`${change} ${name}? ${question}`))) {
          process.stderr.write("Nothing was changed.\n");
          process.exitCode = 1;
          return;
        }
        const body = { change, reason: options.reason };
        const changed = await client(changeNode, { params: { node_id: id }, body });
        printResult(options, changed, () => done(changed.name));
      });
    if (question) command.option("--yes", "do not ask");
  }
}
