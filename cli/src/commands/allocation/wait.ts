// Waits until an allocation has the requested status, and prints what it is waiting for. Ctrl-C
// changes nothing: the control plane continues without this command.

import type { Client } from "@holdfast/contracts/client";
import { type Allocation, getAllocation } from "@holdfast/contracts/endpoints/allocations";
import { getNode } from "@holdfast/contracts/endpoints/nodes";
import { changesOf } from "../../client/changes.ts";
import { Refusal } from "../../failure.ts";
import { ago, harmless } from "../../output.ts";

export async function waitFor(
  client: Client,
  asked: Allocation,
  options: { wanted: "active" | "released"; json?: boolean },
): Promise<Allocation> {
  const print = (text: string) => {
    if (!options.json) process.stderr.write(`${harmless(text)}\n`);
  };
  const ended = ({ status }: Allocation) => !["requested", "releasing"].includes(status);
  let latest = asked;
  if (!ended(asked)) print(await waitingText(client, asked));
  const changes = changesOf(asked, {
    read: (query, signal) => client(getAllocation, { params: { allocation_id: asked.id }, query, signal }),
    ended,
  });
  for await (const next of changes) {
    latest = next;
    if (!ended(next) && next.reason) print(`${next.reason.message} ${next.reason.next_step}`);
  }
  if (latest.status === options.wanted) return latest;
  throw failureOf(latest);
}

async function waitingText(client: Client, { node_id, node_name, username, status }: Allocation): Promise<string> {
  const node = await client(getNode, { params: { node_id } });
  const work = status === "requested" ? `create ${username}` : `remove ${username}`;
  if (node.status !== "active") return `Waiting for ${node_name} (${node.status}) to ${work}.`;
  if (node.connection !== "online")
    return `Waiting for ${node_name} to ${work}: offline, last heartbeat ${ago(node.heartbeat_at)}. It happens when the node is online again; Ctrl-C stops waiting.`;
  return `Waiting for ${node_name} to ${work}.`;
}

function failureOf({ id, status, reason, task_id }: Allocation): Refusal {
  const { code, message, next_step } = reason ?? {
    code: status,
    message: `The allocation is ${status}.`,
    next_step: "Someone else changed it in the meantime.",
  };
  return new Refusal(code, { message, nextStep: next_step, details: { allocation: id, status, task: task_id } });
}
