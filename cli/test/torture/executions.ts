// Runs steps on a real agent while gateway, api, agent, worker and postmaster are killed at random moments, and the
// connection between agent and gateway breaks again and again. Every step writes a line to a file that neither product nor
// database knows. Afterwards each request must have one result, and no step may have run twice.

import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Client, createClient } from "@holdfast/contracts/client";
import { createAgentPairingToken, listAgents } from "@holdfast/contracts/endpoints/agents";
import { getMe } from "@holdfast/contracts/endpoints/me";
import type { ExecutionResult } from "@holdfast/contracts/execution/dispatch";
import { readFileIfPresent } from "@holdfast/kit/files";
import { freePorts } from "../../../testkit/processes/free-ports.ts";
import { type Installation, openInstallation, until } from "../../../testkit/processes/holdfast.ts";
import { createDispatcher, type Dispatcher, type Step } from "./dispatcher.ts";
import { randomFrom } from "./random.ts";
import { startRelay } from "./relay.ts";

const victims = ["gateway", "api", "agent", "postmaster", "gateway", "worker"] as const;
type Victim = (typeof victims)[number];

export type ExecutionTortureReport = {
  seed: number;
  kills: Record<Victim, number>;
  brokenConnections: number;
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

const DISPATCH_TOKEN = "torture-dispatch-token";
const LANES = 8;
/** Longer than any outage here: none may cost a step. */
const TIMEOUT_MS = 300_000;

export async function tortureExecutions(options: {
  kills: number;
  seed: number;
  onKill?(text: string): void;
}): Promise<ExecutionTortureReport> {
  const random = randomFrom(options.seed);
  const installation = openInstallation();
  const [gateway, internal] = await freePorts<[number, number]>(2);
  const relay = await startRelay({ target: () => gateway, random });
  let agent: Agent | undefined;
  try {
    const { api_url } = await installation.up({
      HOLDFAST_GATEWAY_PORT: String(gateway),
      HOLDFAST_GATEWAY_INTERNAL_PORT: String(internal),
      HOLDFAST_DISPATCH_TOKEN: DISPATCH_TOKEN,
      HOLDFAST_EXECUTION_WS_URL: `ws://127.0.0.1:${relay.port}/ws`,
      HOLDFAST_UP_AGENT: "no",
    }).ready;
    const operatorToken = readFileSync(`${installation.dataDir}/operator-token`, "utf8").trim();
    const call = createClient({ baseUrl: api_url, token: operatorToken });
    const org = (await call(getMe, {})).organizations[0]?.id ?? "";
    agent = await connectAgent({ installation, call, org, apiUrl: api_url });
    const dispatcher = createDispatcher({
      url: () => `http://127.0.0.1:${internal}`,
      token: DISPATCH_TOKEN,
      random,
    });
    const trace = join(installation.dataDir, "trace");
    const lanes = startLanes({ dispatcher, org, trace, random });
    const kills = await killInTurn({ ...options, random, installation, agent, lanes });
    await lanes.stop();
    relay.calm();
    const judged = await judge({ dispatcher, lanes, trace });
    return { seed: options.seed, kills, brokenConnections: relay.broken(), ...judged };
  } finally {
    await agent?.stop();
    await relay.stop();
    await installation.cleanUp();
  }
}

/** Started again whenever it ends, as a service manager does. */
type Agent = { kill(): void; stop(): Promise<void> };

async function connectAgent(options: {
  installation: Installation;
  call: Client;
  org: string;
  apiUrl: string;
}): Promise<Agent> {
  const { installation, call, org } = options;
  const params = { org_id: org };
  const { token } = await call(createAgentPairingToken, { params });
  const env = {
    HOLDFAST_EXECUTION_CREDENTIALS: join(installation.dataDir, "execution-agent.json"),
    HOLDFAST_EXECUTION_WORKDIR_ROOT: join(installation.dataDir, "execution-work"),
    HOLDFAST_EXECUTION_BACKEND: "host",
  };
  const pairing = ["--pairing-token", token, "--api-base", options.apiUrl];
  let running = installation.start(["agent", "connect", ...pairing], env);
  await until(async () => (await call(listAgents, { params })).agents.some(({ status }) => status === "online"));
  let stopping = false;
  const staying = (async () => {
    while (!stopping) {
      await running.ended;
      if (!stopping) running = installation.start(["agent", "connect"], env);
    }
  })();
  return {
    kill: () => void running.process.kill("SIGKILL"),
    stop: async () => {
      stopping = true;
      running.process.kill("SIGTERM");
      await staying;
    },
  };
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
  installation: Installation;
  agent: Agent;
  lanes: Lanes;
}): Promise<Record<Victim, number>> {
  const { installation, random, lanes } = stage;
  const kills: Record<Victim, number> = { gateway: 0, api: 0, agent: 0, postmaster: 0, worker: 0 };
  const ended = () => [...lanes.steps.values()].filter((one) => one.ended).length;
  for (let count = 0; count < stage.kills; count += 1) {
    const before = ended();
    await until(() => ended() > before);
    await new Promise((resolve) => setTimeout(resolve, random() * 600));
    const victim = victims[count % victims.length] ?? "gateway";
    if (victim === "agent") stage.agent.kill();
    else if (!killOne(installation, victim)) continue;
    kills[victim] += 1;
    stage.onKill?.(`kill ${count + 1}: ${victim}, ${ended()} steps ended`);
  }
  return kills;
}

function killOne(installation: Installation, victim: Exclude<Victim, "agent">): boolean {
  const pid = victim === "postmaster" ? installation.postmaster() : installation.upFile().children[victim]?.pid;
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
