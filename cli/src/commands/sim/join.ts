// Makes the simulated nodes of a run members of the organization, each by a token of its own. Nodes of an earlier run
// are taken back in with new keys instead of being made again.

import type { Client } from "@holdfast/contracts/client";
import { createEnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import { listNodes } from "@holdfast/contracts/endpoints/nodes";
import type { SimAgent } from "@holdfast/node-agent/sim/agent";
import { characterOf, SIMULATED, simName, simNumber } from "@holdfast/node-agent/sim/character";
import type { Fleet } from "@holdfast/node-agent/sim/fleet";
import { createSimJoiner, type SimJoiner } from "@holdfast/node-agent/sim/join";
import { agentVersion } from "@holdfast/node-agent/version";
import { everyPage } from "../../client/pages.ts";
import { Refusal } from "../../failure.ts";

/** Joins under way: more would only wait in the database. */
const AT_ONCE = 12;

export type SimNode = { agent: SimAgent; rack: number };

/** Ids by number. A machine that merely has such a name is no part of it. */
export async function findSimulated(client: Client): Promise<Map<number, string>> {
  const nodes = await everyPage((cursor) =>
    client(listNodes, { query: { state: "present", cursor, limit: 200 } }),
  );
  const found = new Map<number, string>();
  for (const { id, name, connection, capabilities } of nodes) {
    const number = simNumber(name);
    if (number === undefined) continue;
    if (connection !== "never" && !capabilities.includes(SIMULATED)) {
      throw new Refusal("not_simulated", {
        message: `Node ${name} has the name of a simulated node, but is a real one.`,
        nextStep: `Rename it: holdfast node rename ${name} <name>`,
      });
    }
    found.set(number, id);
  }
  return found;
}

export async function joinAll(options: {
  client: Client;
  fleet: Fleet;
  known: ReadonlyMap<number, string>;
  /** The first number; default: 1. */
  from?: number;
  agents: number;
  seed: number;
  signal: AbortSignal;
  onJoined(): void;
}): Promise<SimNode[]> {
  const { client, fleet, known, from = 1, agents, seed, signal } = options;
  const nodes: SimNode[] = [];
  let joiner: SimJoiner | undefined;
  let next = from;
  const joinOne = async (number: number) => {
    const nodeId = known.get(number);
    const body = nodeId === undefined ? { node_name: simName(number) } : { node_id: nodeId };
    const { token, api_url } = await client(createEnrollmentToken, { body });
    joiner ??= createSimJoiner({ apiUrl: api_url, atOnce: AT_ONCE });
    const character = characterOf(number, { seed, agentVersion });
    const joined = await joiner.join({ token, character, ...(nodeId === undefined ? {} : { nodeId }) });
    nodes.push({ agent: fleet.add(joined, character), rack: character.rack });
    options.onJoined();
  };
  const lane = async () => {
    while (next <= agents && !signal.aborted) {
      const number = next;
      next += 1;
      await joinOne(number);
    }
  };
  try {
    await Promise.all(Array.from({ length: AT_ONCE }, lane));
  } finally {
    // If one lane fails, the others stop joining nodes.
    next = agents + 1;
    joiner?.close();
  }
  return nodes;
}
