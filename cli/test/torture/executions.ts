// Runs steps on a real agent while two gateways, api, agent, worker, postmaster and Redis are killed at random moments and
// Redis is emptied, and the connections between agent and gateways break and repeat frames. Every step writes a line to a
// file that neither product nor database knows. Afterwards each request must have one result, and no step may have run twice.

import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { createAgentPairingToken, listAgents } from "@holdfast/contracts/endpoints/agents";
import type { ExecutionResult } from "@holdfast/contracts/execution/dispatch";
import { readFileIfPresent } from "@holdfast/kit/files";
import { hostBackend } from "../../../node-agent/test/support/host-backend.ts";
import { until } from "../../../testkit/processes/holdfast.ts";
import { type GatewayPair, openGatewayPair } from "../support/gateway-pair.ts";
import { type Staying, stayRunning } from "../support/staying.ts";
import { createDispatcher, type Dispatcher, type Step } from "./dispatcher.ts";
import { type FrameRelay, startFrameRelay } from "./frame-relay.ts";
import { randomFrom } from "./random.ts";

/** In this order, so that gateways are killed that wait for what is behind them. `redis flush` empties it; all others are killed. */
const victims = [
  "api",
  "gateway",
  "redis",
  "agent",
  "postmaster",
  "second gateway",
  "redis flush",
  "worker",
] as const;
type Victim = (typeof victims)[number];

export type ExecutionTortureReport = {
  seed: number;
  kills: Record<Victim, number>;
  brokenConnections: number;
  repeatedFrames: number;
  steps: number;
  /** By how they ended. */
  ended: Record<string, number>;
  /** Requests whose result differs from the one that was answered first, or is gone. */
  changed: string[];
  /** Steps that ran more than once. */
  repeated: string[];
  /** Steps that succeeded and left no trace. */
  untraced: string[];
};

const LANES = 8;
/** Longer than any outage here: none may cost a step. */
const TIMEOUT_MS = 300_000;

export async function tortureExecutions(options: {
  kills: number;
  seed: number;
  onKill?(text: string): void;
}): Promise<ExecutionTortureReport> {
  const random = randomFrom(options.seed);
  let relay: FrameRelay | undefined;
  let agent: Staying | undefined;
  const pair = await openGatewayPair({
    env: { HOLDFAST_UP_AGENT: "no" },
    async through(target) {
      relay = await startFrameRelay({ target, random });
      return relay.port;
    },
  });
  try {
    agent = await connectAgent(pair);
    let turn = 0;
    const dispatcher = createDispatcher({
      url: () => pair.gateways[turn++ % 2]?.internalUrl ?? "",
      token: pair.dispatchToken,
      random,
    });
    const trace = join(pair.installation.dataDir, "trace");
    const lanes = startLanes({ dispatcher, org: pair.org, trace, random });
    const kills = await killInTurn({ ...options, random, pair, agent, lanes });
    await lanes.stop();
    relay?.calm();
    const judged = await judge({ dispatcher, lanes, trace });
    const met = { brokenConnections: relay?.broken() ?? 0, repeatedFrames: relay?.repeated() ?? 0 };
    return { seed: options.seed, kills, ...met, ...judged };
  } finally {
    await agent?.stop();
    await relay?.stop();
    await pair.cleanUp();
  }
}

async function connectAgent({ installation, call, org, ready }: GatewayPair): Promise<Staying> {
  const params = { org_id: org };
  const { token } = await call(createAgentPairingToken, { params });
  const env = {
    HOLDFAST_EXECUTION_CREDENTIALS: join(installation.dataDir, "execution-agent.json"),
    HOLDFAST_EXECUTION_WORKDIR_ROOT: join(installation.dataDir, "execution-work"),
    ...hostBackend,
  };
  const connect = (...args: string[]) => installation.start(["agent", "connect", ...args], env);
  const agent = stayRunning(() => connect("--pairing-token", token, "--api-base", ready.api_url), connect);
  await until(async () => (await call(listAgents, { params })).agents.some(({ status }) => status === "online"));
  return agent;
}

type Lanes = { steps: ReadonlyMap<string, { step: Step; ended?: ExecutionResult }>; stop(): Promise<void> };

/** Each dispatches a step, waits for its result, and dispatches the next one. */
function startLanes(options: { dispatcher: Dispatcher; org: string; trace: string; random: () => number }): Lanes {
  const { dispatcher, org, trace, random } = options;
  const steps = new Map<string, { step: Step; ended?: ExecutionResult }>();
  let stopping = false;
  const run = async (lane: number) => {
    for (let number = 0; !stopping; number += 1) {
      const mark = `${lane}-${number}`;
      const step = stepOf({ org, mark, trace, holdMs: Math.floor(random() ** 4 * 1_500) });
      const dispatched: { step: Step; ended?: ExecutionResult } = { step };
      steps.set(mark, dispatched);
      dispatched.ended = await dispatcher.run(step);
    }
  };
  const running = Array.from({ length: LANES }, (_, lane) => run(lane));
  return {
    steps,
    stop: async () => {
      stopping = true;
      await Promise.all(running);
    },
  };
}

function stepOf(options: { org: string; mark: string; trace: string; holdMs: number }): Step {
  const { org, mark, trace, holdMs } = options;
  const [runId, nodeId] = [randomUUID(), `step-${mark}`];
  const script = `echo ${mark} >> '${trace}'; sleep ${holdMs / 1000}; echo done ${mark}`;
  const config = { task: { type: "shell", script }, sandbox: { backend: "host" } };
  const body = {
    ...{ organizationId: org, requestedByUserId: randomUUID(), runId, workflowId: randomUUID(), nodeId },
    ...{ nodeType: "agent.execute", attemptCount: 1, kind: "agent.execute" },
    payload: { nodeId, node: { id: nodeId, type: "agent.execute", config } },
    ...{ timeoutMs: TIMEOUT_MS, waitMs: TIMEOUT_MS },
  };
  return { runId, nodeId, body };
}

async function killInTurn(stage: {
  kills: number;
  onKill?(text: string): void;
  random: () => number;
  pair: GatewayPair;
  agent: Staying;
  lanes: Lanes;
}): Promise<Record<Victim, number>> {
  const { pair, agent, random, lanes } = stage;
  const kills = Object.fromEntries(victims.map((victim) => [victim, 0])) as Record<Victim, number>;
  const ended = () => [...lanes.steps.values()].filter((one) => one.ended).length;
  for (let count = 0; count < stage.kills; count += 1) {
    const before = ended();
    // Half of them hit what has not recovered from the one before.
    if (random() < 0.5) await until(() => ended() > before);
    await wait(random() * 600);
    const victim = victims[count % victims.length] ?? "gateway";
    if (!(await killOne({ pair, agent, random }, victim))) continue;
    kills[victim] += 1;
    stage.onKill?.(`kill ${count + 1}: ${victim}, ${ended()} steps ended`);
  }
  return kills;
}

async function killOne(
  { pair, agent, random }: { pair: GatewayPair; agent: Staying; random: () => number },
  victim: Victim,
): Promise<boolean> {
  const { installation, redis, gateways } = pair;
  switch (victim) {
    case "redis":
      await redis.stop();
      await wait(random() * 3_000);
      await redis.start();
      return true;
    case "redis flush":
      await redis.flush();
      return true;
    case "agent":
      return kill(agent.pid());
    case "gateway":
      return kill(gateways[0].pid());
    case "second gateway":
      return kill(gateways[1].pid());
    case "postmaster":
      return kill(installation.postmaster());
    case "api":
    case "worker":
      return kill(installation.upFile().children[victim]?.pid);
  }
}

function kill(pid: number | undefined): boolean {
  if (!pid) return false;
  try {
    process.kill(pid, "SIGKILL");
    return true;
  } catch {
    return false;
  }
}

async function judge({ dispatcher, lanes, trace }: { dispatcher: Dispatcher; lanes: Lanes; trace: string }) {
  const runs = new Map<string, number>();
  for (const mark of (readFileIfPresent(trace) ?? "").split("\n")) runs.set(mark, (runs.get(mark) ?? 0) + 1);
  const changed: string[] = [];
  for (const [mark, { step, ended }] of lanes.steps) {
    const stored = await dispatcher.result(step);
    if (JSON.stringify(stored) !== JSON.stringify(ended)) {
      changed.push(`${mark}: ${JSON.stringify(ended)}, then ${JSON.stringify(stored)}`);
    }
  }
  const all = [...lanes.steps].map(([mark, { ended }]) => ({ mark, ended, runs: runs.get(mark) ?? 0 }));
  const groups = Map.groupBy(all, ({ ended }) => ended?.error?.split(":")[0] ?? ended?.status ?? "none");
  return {
    steps: all.length,
    ended: Object.fromEntries([...groups].map(([how, each]) => [how, each.length])),
    changed,
    repeated: all.filter((one) => one.runs > 1).map(({ mark }) => mark),
    untraced: all.filter((one) => one.ended?.status === "succeeded" && one.runs === 0).map(({ mark }) => mark),
  };
}
