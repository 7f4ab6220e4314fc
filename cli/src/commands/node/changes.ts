// holdfast node drain, quarantine, reactivate, revoke, retire.

import { changeNode, type NodeChange, type NodeDetail } from "@holdfast/contracts/endpoints/nodes";
import type { Command } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { findNode } from "../../client/find-node.ts";
import { printResult } from "../../output.ts";
import { agreed } from "../../prompt.ts";

type Change = {
  /** Default: the name of the change. */
  command?: string;
  summary: string;
  /** Asked before a change that cannot easily be undone. */
  question?: string;
  /** What the server has done. The node has not confirmed anything yet. */
  done: (node: NodeDetail) => string;
};

const changes: Record<NodeChange, Change> = {
  drain: {
    summary: "give a node no new tasks; running tasks finish",
    done: ({ name, running_tasks }) =>
      `${name} is draining: it gets no new tasks${stillRunning(running_tasks)}. To undo: holdfast node reactivate ${name}`,
  },
  fence: {
    command: "quarantine",
    summary: "give a node no tasks until it is reactivated; running tasks are not stopped",
    done: ({ name, running_tasks }) =>
      `${name} is quarantined: it gets no tasks${stillRunning(running_tasks)}. To undo: holdfast node reactivate ${name}`,
  },
  reactivate: {
    summary: "let a drained or quarantined node get tasks again",
    done: ({ name, connection }) =>
      connection === "online"
        ? `${name} is active: it gets tasks again.`
        : `${name} is active but offline: tasks wait until its agent is online.`,
  },
  revoke: {
    summary: "reject a node's certificates immediately; it needs a new token to come back",
    question: "Its certificates are rejected immediately, and it needs a new token to come back.",
    done: ({ name }) =>
      `${name} is revoked: the server rejects its certificates. To bring it back: holdfast node token create --node ${name}, enroll it again, then holdfast node reactivate ${name}`,
  },
  retire: {
    summary: "remove a node; this cannot be undone",
    question: "This cannot be undone: the machine can be enrolled again only as a new node.",
    done: ({ name }) => `${name} is retired: the server rejects its certificates, and its name can be used again.`,
  },
};

function stillRunning(tasks: number | null): string {
  if (tasks === null || tasks === 0) return "";
  return tasks === 1 ? "; 1 task is still running" : `; ${tasks} tasks are still running`;
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
      .option("--reason <text>", "shown on the node's page and by its agent")
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
