// Waits until an allocation is what was asked for, and tells meanwhile what it waits for. Leaving it
// with Ctrl-C changes nothing: an allocation goes on by itself.

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
  const tell = (text: string) => {
    if (!options.json) process.stderr.write(`${harmless(text)}\n`);
  };
  const ended = ({ status }: Allocation) => !["requested", "releasing"].includes(status);
  let latest = asked;
  if (!ended(asked)) tell(await whatItWaitsFor(client, asked));
  const changes = changesOf(asked, {
    read: (query, signal) => client(getAllocation, { params: { allocation_id: asked.id }, query, signal }),
    ended,
  });
  for await (const next of changes) {
    latest = next;
    if (!ended(next) && next.reason) tell(`${next.reason.message} ${next.reason.next_step}`);
  }
  if (latest.status === options.wanted) return latest;
  throw failureOf(latest);
}

async function whatItWaitsFor(
  client: Client,
  { node_id, node_name, username, status }: Allocation,
): Promise<string> {
  const node = await client(getNode, { params: { node_id } });
  const work = status === "requested" ? `make ${username}` : `remove ${username}`;
  if (node.status !== "active") return `Waiting for ${node_name}, which is ${node.status}, to ${work}.`;
  if (node.connection !== "online")
    return `Waiting for ${node_name}, which was heard ${ago(node.heartbeat_at)}, to ${work}. It is done when the node is back; Ctrl-C leaves it to itself.`;
  return `Waiting for ${node_name} to ${work}.`;
}

function failureOf({ id, status, reason, task_id }: Allocation): Refusal {
  const { code, message, next_step } = reason ?? {
    code: status,
    message: `The allocation is ${status}.`,
    next_step: "Somebody else changed it meanwhile.",
  };
  return new Refusal(code, { message, nextStep: next_step, details: { allocation: id, status, task: task_id } });
}
