// Many simulated agents in one process, and their combined state.

import { randomUUID } from "node:crypto";
import type { LinkKind } from "../link/client.ts";
import { lookupBy } from "../link/lookup.ts";
import { type SimAgent, startSimAgent } from "./agent.ts";
import type { Character } from "./character.ts";
import { createDialling } from "./dialling.ts";
import { apiUrlOf } from "./join.ts";
import { type SimIdentity, sharedKeyrings } from "./memory-identity.ts";
import { createSimTypes } from "./types.ts";

export type FleetStatus = {
  agents: number;
  connected: number;
  /** Disconnected on purpose. */
  away: number;
  /** The number of all others, by reason. */
  problems: Record<string, number>;
  heartbeats: number;
  tasks: { succeeded: number; failed: number; refused: number };
};

export type Fleet = {
  add(joined: SimIdentity, character: Character): SimAgent;
  status(): FleetStatus;
  stop(): Promise<void>;
};

/** `random` decides which tasks fail; undefined: none does. */
export function createFleet(options: { random?: () => number; link?: LinkKind } = {}): Fleet {
  const { random, link = "stream" } = options;
  const types = createSimTypes();
  const keyringOf = sharedKeyrings();
  const bootId = randomUUID();
  const myTurn = createDialling();
  const agents: SimAgent[] = [];
  const tasks = { started: 0, succeeded: 0, failed: 0, refused: 0 };
  let heartbeats = 0;

  return {
    add(joined, character) {
      const { resolve } = joined.agent.profile;
      const agent = startSimAgent({
        ...{ joined, character, types, bootId, keyringOf, myTurn, link },
        apiUrl: apiUrlOf(joined),
        lookup: lookupBy(() => resolve),
        fails: () => random !== undefined && random() < character.failureRate,
        onHeartbeat: () => {
          heartbeats += 1;
        },
        onTask: (event) => {
          tasks[event] += 1;
        },
      });
      agents.push(agent);
      return agent;
    },
    status() {
      const away = agents.filter((one) => one.away()).length;
      const problems: Record<string, number> = {};
      let connected = 0;
      for (const agent of agents) {
        if (agent.connected()) connected += 1;
        else if (!agent.away()) {
          const problem = agent.problem() ?? "connecting";
          problems[problem] = (problems[problem] ?? 0) + 1;
        }
      }
      const { succeeded, failed, refused } = tasks;
      return {
        agents: agents.length,
        connected,
        away,
        problems,
        heartbeats,
        tasks: { succeeded, failed, refused },
      };
    },
    async stop() {
      await Promise.all(agents.map((agent) => agent.stop()));
    },
  };
}
