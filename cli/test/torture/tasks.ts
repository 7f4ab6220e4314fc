// Runs tasks on a real node while api, agent, worker and postmaster are killed at random moments and
// the connection between agent and api breaks again and again. Afterwards every task must have
// ended, once and finally, and no task that may run only once has run twice. The agent has a stream or polls, by turns.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { CallError, type Client, createClient } from "@holdfast/contracts/client";
import { createEnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import { listNodes } from "@holdfast/contracts/endpoints/nodes";
import { cancelTask, createTask, getTask, type Task, terminalStatuses } from "@holdfast/contracts/endpoints/tasks";
import { readFileIfPresent } from "@holdfast/kit/files";
import { copyCheckout } from "../../../testkit/processes/checkout.ts";
import { freePorts } from "../../../testkit/processes/free-ports.ts";
import { type Installation, openInstallation, until } from "../../../testkit/processes/holdfast.ts";
import { randomFrom } from "./random.ts";
import { type Relay, startRelay } from "./relay.ts";
import { onceOnly, repeatable, tracedTypes } from "./task-types.ts";

const victims = ["api", "agent", "postmaster", "worker"] as const;
type Victim = (typeof victims)[number];
const links = ["stream", "poll"] as const;
type Link = (typeof links)[number];

export type TaskTortureReport = {
  seed: number;
  kills: Record<Victim, number>;
  /** How often the agent started with each kind of link. */
  starts: Record<Link, number>;
  brokenConnections: number;
  /** Tasks whose creation was acknowledged. */
  tasks: number;
  ended: Record<string, number>;
  /** Acknowledged tasks that are gone, or have not ended. */
  missing: string[];
  /** Tasks that were seen to have ended in one way, and later in another. */
  changed: string[];
  /** Tasks that may run once and ran more often. */
  repeated: string[];
  /** Completed tasks of which there is no trace on the node. */
  untraced: string[];
};

export async function tortureTasks(options: {
  kills: number;
  seed: number;
  onKill?(text: string): void;
}): Promise<TaskTortureReport> {
  const random = randomFrom(options.seed);
  const checkout = copyCheckout(tracedTypes);
  const installation = openInstallation({ command: checkout.command });
  const [port] = await freePorts<[number]>(1);
  const relay = await startRelay({ target: () => port, random });
  let agent: Agent | undefined;
  try {
    const { api_url } = await installation.up({
      HOLDFAST_NODE_API_PORT: String(port),
      HOLDFAST_NODE_API_URL: `https://127.0.0.1:${relay.port}`,
      HOLDFAST_UP_AGENT: "no",
    }).ready;
    const token = readFileSync(`${installation.dataDir}/operator-token`, "utf8").trim();
    const call = createClient({ baseUrl: api_url, token });
    agent = await joinAgent(installation, call);
    return await run({ ...options, random, installation, relay, call, agent });
  } finally {
    await agent?.stop();
    await relay.stop();
    await installation.cleanUp();
    checkout.remove();
  }
}

type Stage = {
  kills: number;
  seed: number;
  onKill?(text: string): void;
  random: () => number;
  installation: Installation;
  relay: Relay;
  call: Client;
  agent: Agent;
};

/** An agent that joined through the relay, as one on another machine would, and is started again when it ends. */
type Agent = { kill(): void; stop(): Promise<void>; starts(): Record<Link, number> };

async function joinAgent(installation: Installation, call: Client): Promise<Agent> {
  const { token, api_url } = await call(createEnrollmentToken, { body: {} });
  const env = { HOLDFAST_AGENT_STATE_DIR: join(installation.dataDir, "agent"), HOLDFAST_AGENT_PORT: "0" };
  for (let joined = false; !joined; ) {
    const { code } = await installation.run(["agent", "join", "--token", token, "--api", api_url], env);
    joined = code === 0;
  }
  let stopping = false;
  const starts: Record<Link, number> = { stream: 0, poll: 0 };
  const start = () => {
    const link = starts.stream > starts.poll ? "poll" : "stream";
    starts[link] += 1;
    return installation.start(["agent", "run"], { ...env, HOLDFAST_AGENT_LINK: link });
  };
  let running = start();
  const staying = (async () => {
    while (!stopping) {
      await running.ended;
      if (!stopping) running = start();
    }
  })();
  return {
    kill: () => void running.process.kill("SIGKILL"),
    starts: () => starts,
    stop: async () => {
      stopping = true;
      running.process.kill("SIGTERM");
      await staying;
    },
  };
}

async function run(stage: Stage): Promise<TaskTortureReport> {
  const { installation, relay, call, random } = stage;
  const nodeId = await onlyNode(call);
  const trace = join(installation.dataDir, "trace");
  const producers = startProducers({ call, nodeId, trace, random, producers: 6 });
  const kills: Record<Victim, number> = { api: 0, agent: 0, postmaster: 0, worker: 0 };
  for (let count = 0; count < stage.kills; count += 1) {
    const before = producers.tasks.size;
    await until(() => producers.tasks.size > before);
    await pause(random() * 600);
    const victim = victims[count % victims.length] ?? "api";
    if (victim === "agent") stage.agent.kill();
    else if (!killOne(installation, victim)) continue;
    kills[victim] += 1;
    stage.onKill?.(`kill ${count + 1}: ${victim}, ${producers.tasks.size} tasks, ${relay.broken()} cut`);
  }
  await producers.stop();
  relay.calm();
  const brokenConnections = relay.broken();
  const judged = await judge(stage, producers, trace);
  return { seed: stage.seed, kills, starts: stage.agent.starts(), brokenConnections, ...judged };
}

async function judge(stage: Stage, producers: Producers, trace: string) {
  const { call } = stage;
  const final = new Map<string, Task>();
  for (const id of producers.tasks.keys()) {
    const task = await ended(call, id);
    if (task) final.set(id, task);
  }
  const runs = new Map<string, number>();
  for (const mark of (readFileIfPresent(trace) ?? "").split("\n")) runs.set(mark, (runs.get(mark) ?? 0) + 1);
  const all = [...producers.tasks].map(([id, made]) => ({ id, ...made, task: final.get(id) }));
  return {
    tasks: all.length,
    ended: Object.fromEntries(
      Map.groupBy(final.values(), (task) => task.status)
        .entries()
        .map(([k, v]) => [k, v.length]),
    ),
    missing: all.filter(({ task }) => !task).map(({ id }) => id),
    changed: all
      .filter(({ task, seen }) => task && seen && seen !== endOf(task))
      .map(({ id, task, seen }) => `${id}: ${seen}, then ${task && endOf(task)}`),
    repeated: all.filter(({ type, mark }) => type === onceOnly && (runs.get(mark) ?? 0) > 1).map(({ id }) => id),
    untraced: all.filter(({ mark, task }) => task?.status === "completed" && !runs.has(mark)).map(({ id }) => id),
  };
}

type Made = {
  type: string;
  mark: string /** How it ended, when it was first seen to have ended. */;
  seen?: string;
};
type Producers = { tasks: ReadonlyMap<string, Made>; stop(): Promise<void> };

/** Each makes a task, waits for its end or cancels it or leaves it alone, and makes the next one. */
function startProducers(options: {
  call: Client;
  nodeId: string;
  trace: string;
  random: () => number;
  producers: number;
}): Producers {
  const { call, nodeId, trace, random } = options;
  const tasks = new Map<string, Made>();
  let stopping = false;
  const produce = async (producer: number) => {
    for (let number = 0; !stopping; number += 1) {
      const made: Made = { type: random() < 0.5 ? onceOnly : repeatable, mark: `${producer}-${number}` };
      const params = { file: trace, mark: made.mark, hold_ms: Math.floor(random() ** 4 * 1500) };
      // Drawn before it is sent: a repetition must be the same request.
      const body = { type: made.type, params, priority: Math.floor(random() * 10) };
      const task = await whileUnanswered(() =>
        call(createTask, {
          params: { node_id: nodeId },
          body,
          idempotencyKey: `mark-${made.mark}`,
          signal: AbortSignal.timeout(5_000),
        }),
      );
      tasks.set(task.id, made);
      const choice = random();
      if (choice < 0.1) await whileUnanswered(() => call(cancelTask, { params: { task_id: task.id } }));
      if (choice < 0.7) made.seen = await firstEnd(task.id);
    }
  };
  const firstEnd = async (id: string): Promise<string | undefined> => {
    for (let tries = 0; tries < 40 && !stopping; tries += 1) {
      const query = { wait_seconds: 1 };
      const task = await whileUnanswered(() => call(getTask, { params: { task_id: id }, query }));
      if (terminalStatuses.has(task.status)) return endOf(task);
    }
    return undefined;
  };
  const running = Array.from({ length: options.producers }, (_, producer) => produce(producer));
  return {
    tasks,
    stop: async () => {
      stopping = true;
      await Promise.all(running);
    },
  };
}

function endOf(task: Task): string {
  return JSON.stringify([task.status, task.result, task.failure?.code, task.generation]);
}

/** Waits for a task's end; undefined when there is no such task. */
async function ended(call: Client, id: string): Promise<Task | undefined> {
  for (;;) {
    try {
      const query = { wait_seconds: 5 };
      const task = await whileUnanswered(() => call(getTask, { params: { task_id: id }, query }));
      if (terminalStatuses.has(task.status)) return task;
    } catch (error) {
      if (error instanceof CallError && error.envelope.code === "not_found") return undefined;
      throw error;
    }
  }
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

async function onlyNode(call: Client): Promise<string> {
  for (;;) {
    const { items } = await whileUnanswered(() => call(listNodes, {}));
    const ready = items.find((node) => node.connection === "online" && node.status === "active");
    if (ready) return ready.id;
    await pause(50);
  }
}

/** As a careful client would: again until there is an answer. */
async function whileUnanswered<T>(request: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await request();
    } catch (error) {
      if (error instanceof CallError && !error.envelope.retryable) throw error;
      await pause(20);
    }
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
