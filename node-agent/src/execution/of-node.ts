// A node that runs steps with its own identity: its certificate gets it an agent token, which is kept in memory and replaced with
// each start. Everything else is as for an agent that was paired with a token.

import { join } from "node:path";
import type { AgentCapabilities } from "@holdfast/contracts/execution/frames";
import { DEFAULT_MAX_IN_FLIGHT, executionKinds } from "@holdfast/contracts/execution/limits";
import { readSettings } from "@holdfast/kit/settings";
import { LinkFailure } from "../link/failures.ts";
import type { Log } from "../log.ts";
import { agentVersion } from "../version.ts";
import type { ExecutionAgent } from "./agent.ts";
import { usualConnectors } from "./connectors.ts";
import { Paired } from "./credentials.generated.ts";
import type { Credentials } from "./credentials.ts";
import { openExecutionAgent } from "./open.ts";
import { executionSettings } from "./settings.ts";

/** Whoever allows it later does not have to restart the agent. */
const AGAIN_MS = 60_000;

export type NodeSteps = { isConnected(): boolean; stop(): Promise<void> };

export function runStepsAsNode(options: {
  stateDir: string;
  name: string;
  pair(body: { agentVersion: string; capabilities: AgentCapabilities }): Promise<unknown>;
  log: Log;
  random?: (() => number) | undefined;
  againMs?: number;
}): NodeSteps {
  const { log } = options;
  const stopped = new AbortController();
  let agent: ExecutionAgent | undefined;
  let said: string | undefined;

  const open = async () => {
    const capabilities = {
      kinds: [...executionKinds],
      connectors: [...usualConnectors],
      maxInFlight: DEFAULT_MAX_IN_FLIGHT,
    };
    const paired = Paired.parse(await options.pair({ agentVersion, capabilities }));
    const credentials = {
      ...{ ...paired, name: options.name, apiBaseUrl: "" },
      ...(paired.keySet ? { keySet: { version: paired.keySet.version, keys: paired.keySet.content.keys } } : {}),
    } as Credentials;
    if (stopped.signal.aborted) return;
    agent = await openExecutionAgent({
      ...{ credentials, credentialsPath: join(options.stateDir, "executions.json"), agentVersion, log },
      settings: readSettings(executionSettings, process.env),
      maxInFlight: DEFAULT_MAX_IN_FLIGHT,
      ...(options.random ? { random: options.random } : {}),
    });
    log.info("this node runs steps of workflows with its own identity", { agent_id: paired.agentId });
  };

  const keepTrying = async () => {
    while (!stopped.signal.aborted && !agent) {
      try {
        await open();
      } catch (error) {
        // Once for each reason: it may stay for weeks.
        const why = error instanceof LinkFailure ? error.message : String(error);
        if (why !== said) log.warn("this node runs no steps of workflows", { reason: why });
        said = why;
        await pause(options.againMs ?? AGAIN_MS, stopped.signal);
      }
    }
  };
  const trying = keepTrying();

  return {
    isConnected: () => agent?.isConnected() ?? false,
    async stop() {
      stopped.abort();
      await trying;
      await agent?.stop();
    },
  };
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
