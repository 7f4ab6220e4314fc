// holdfast node drain, quarantine, reactivate, revoke, retire.

import { changeNode, type NodeChange, type NodeDetail } from "@holdfast/contracts/endpoints/nodes";
import type { Command } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { findNode } from "../../client/find-node.ts";
import { printResult } from "../../output.ts";
import { agreed } from "../../prompt.ts";

type Change = {
  /** Left out: the change's own name. */
  command?: string;
  summary: string;
  /** Of what cannot simply be taken back, asked before it is done. */
  question?: string;
  /** What the server has done. Of what the node does then, nothing is known yet. */
  done: (node: NodeDetail) => string;
};

const changes: Record<NodeChange, Change> = {
  drain: {
    summary: "give a node no new tasks; running ones end",
    done: ({ name, running_tasks }) =>
      `${name} gets no new tasks${stillRunning(running_tasks)}. \`holdfast node reactivate ${name}\` ends that.`,
  },
  fence: {
    command: "quarantine",
    summary: "give a node no tasks at all until it is reactivated; what runs there is not stopped",
    done: ({ name, running_tasks }) =>
      `${name} is quarantined: it gets no tasks${stillRunning(running_tasks)}. \`holdfast node reactivate ${name}\` ends that.`,
  },
  reactivate: {
    summary: "let a drained or quarantined node get tasks again",
    done: ({ name, connection }) =>
      connection === "online"
        ? `${name} is active: it gets tasks again.`
        : `${name} is active, but offline: tasks wait until its agent connects.`,
  },
  revoke: {
    summary: "end a node's identity at once; it needs a new token to come back",
    question: "Its certificates end at once, and it comes back only with a new token.",
    done: ({ name }) =>
      `The identity of ${name} is revoked: the server accepts none of its certificates. To take it back: \`holdfast node token create --node ${name}\`, then reactivate it.`,
  },
  retire: {
    summary: "remove a node; this cannot be undone",
    question: "This cannot be undone: the machine can come back only as a new node.",
    done: ({ name }) => `${name} is retired: the server accepts none of its certificates, and its name is free.`,
  },
};

function stillRunning(tasks: number): string {
  if (tasks === 0) return "";
  return tasks === 1 ? "; 1 task still runs there" : `; ${tasks} tasks still run there`;
}

type ChangeOptions = ServerOptions & { reason?: string; yes?: boolean };

export function addChanges(node: Command): void {
  for (const [change, { command: name = change, summary, question, done }] of Object.entries(changes) as [
    NodeChange,
    Change,
  ][]) {
    const command = withServerOptions(node.command(name))
      .description(summary)
      .argument("<node>", "id or name")
      .option("--reason <text>", "why; the node's page and agent show it")
      .action(async (wanted: string, options: ChangeOptions) => {
        const client = await connect(options);
        const found = await findNode(client, wanted);
        if (question && !options.yes && !(await agreed(`${name} ${found.name}? ${question}`))) {
          process.stderr.write("Nothing was changed.\n");
          process.exitCode = 1;
          return;
        }
        const body = { change, reason: options.reason };
        const changed = await client(changeNode, { params: { node_id: found.id }, body });
        printResult(options, changed, done);
      });
    if (name !== change) command.alias(change);
    if (question) command.option("--yes", "do not ask");
  }
}
