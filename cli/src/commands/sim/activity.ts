// Activity of a simulated fleet: nodes disconnect and reconnect, now and then a whole rack, and some get tasks.

import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "@holdfast/contracts/client";
import { createTask } from "@holdfast/contracts/endpoints/tasks";
import type { Chance } from "@holdfast/node-agent/sim/random";
import type { SimNode } from "./join.ts";

const TICK_MS = 1_000;
/** Mostly longer than the server takes to call a node offline. */
const away = { leastSeconds: 60, mostSeconds: 420 };
/** Of all nodes, away at a time. */
const AWAY_SHARE = 0.01;
const RACK_OUTAGES_PER_SECOND = 1 / 600;
/** Of each node. */
const TASKS_PER_SECOND = 1 / 200;
const MOST_TASKS_PER_SECOND = 5;
const holds = [0, 0, 0, 500, 2_000, 5_000, 15_000];

export async function simulateActivity(options: {
  client: Client;
  nodes: readonly SimNode[];
  chance: Chance;
  calm: boolean;
  signal: AbortSignal;
}): Promise<void> {
  const { client, nodes, chance, calm, signal } = options;
  const returns = new Map<SimNode, number>();
  const leave = (node: SimNode, now: number) => {
    if (returns.has(node)) return;
    node.agent.goAway();
    returns.set(node, now + chance.whole(away.leastSeconds, away.mostSeconds) * 1000);
  };
  const leavesPerSecond = (AWAY_SHARE * nodes.length) / ((away.leastSeconds + away.mostSeconds) / 2);
  const tasksPerSecond = Math.min(MOST_TASKS_PER_SECOND, nodes.length * TASKS_PER_SECOND);

  while (!signal.aborted) {
    const now = performance.now();
    for (const [node, at] of returns) {
      if (at > now) continue;
      returns.delete(node);
      node.agent.comeBack();
    }
    if (!calm) {
      for (let left = howMany(leavesPerSecond, chance); left > 0; left -= 1) leave(chance.pick(nodes), now);
      if (nodes.length > 1 && chance.happens(RACK_OUTAGES_PER_SECOND)) {
        const { rack } = chance.pick(nodes);
        for (const node of nodes) if (node.rack === rack) leave(node, now);
      }
      for (let left = howMany(tasksPerSecond, chance); left > 0; left -= 1)
        void createRandomTask(client, nodes, chance);
    }
    await sleep(TICK_MS, undefined, { signal }).catch(() => undefined);
  }
}

/** On average as many; of a small rate, mostly none. */
function howMany(perSecond: number, chance: Chance): number {
  return Math.floor(perSecond) + (chance.happens(perSecond % 1) ? 1 : 0);
}

/** Failures are ignored: a busy or unreachable server just gets fewer tasks. */
async function createRandomTask(client: Client, nodes: readonly SimNode[], chance: Chance): Promise<void> {
  const { nodeId } = chance.pick(nodes).agent;
  const body = { type: "node.noop", params: { echo: "simulated", hold_ms: chance.pick(holds) } };
  await client(createTask, { params: { node_id: nodeId }, body }).catch(() => undefined);
}
