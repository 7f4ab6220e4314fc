// Restarts both of two gateways in order, stops their Redis and empties it, while as many steps run on an agent and as many
// shells are open and used. No step may be lost or run twice, no shell may end, and what is typed arrives once.

import { randomBytes, randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createAgentPairingToken, listAgents } from "@holdfast/contracts/endpoints/agents";
import { createAllocation, getAllocation } from "@holdfast/contracts/endpoints/allocations";
import { listNodes } from "@holdfast/contracts/endpoints/nodes";
import { listTerminals } from "@holdfast/contracts/endpoints/terminals";
import type { ExecutionResult } from "@holdfast/contracts/execution/dispatch";
import { readFileIfPresent } from "@holdfast/kit/files";
import { openTerminalClient } from "@holdfast/terminal-client/client";
import { hostBackend } from "../../../node-agent/test/support/host-backend.ts";
import { until } from "../../../testkit/processes/holdfast.ts";
import { commandEnvironment } from "../../src/commands/terminal/environment.ts";
import { type GatewayPair, openGatewayPair, type PairedGateway } from "../support/gateway-pair.ts";
import { createDispatcher, type Dispatcher, type Step } from "./dispatcher.ts";

export type RollingReport = {
  /** Steps that ran all the time, and those that were dispatched meanwhile. */
  executions: { held: number; meanwhile: number };
  shells: number;
  /** Lines that were typed into shells, and answered. */
  typed: number;
  /** What happened, with how many seconds after the start. */
  events: string[];
  /** Requests that did not end as their step did, or whose result differs from the one that was answered. */
  lost: string[];
  /** Steps that did not run exactly once. */
  notOnce: string[];
  /** Shells that ended, or got or printed something else than was typed. */
  interrupted: string[];
};

const LANES = 3;
/** More would be refused as unused tokens. */
const OPENED_AT_ONCE = 5;
const LONG = { timeoutMs: 600_000, waitMs: 600_000 };
/** A shell that answers no line for so long counts as interrupted. */
const ANSWER_MS = 300_000;

/** `count`: of steps, and of shells. */
export function openRollingPair(count: number): Promise<GatewayPair> {
  return openGatewayPair({
    env: {
      HOLDFAST_DRAIN_SECONDS: "4",
      HOLDFAST_TERMINAL_OPEN_SECONDS: "29",
      HOLDFAST_TERMINALS_PER_USER: String(count + 10),
      HOLDFAST_TERMINALS_PER_NODE: String(count + 10),
    },
  });
}

export async function rollGateways(
  pair: GatewayPair,
  options: { count: number; onEvent?(text: string): void },
): Promise<RollingReport> {
  const { count } = options;
  const scratch = mkdtempSync(join(tmpdir(), "holdfast-rolling-"));
  const started = Date.now();
  const events: string[] = [];
  const report = (text: string) => {
    const line = `${Math.round((Date.now() - started) / 1000)} s: ${text}`;
    events.push(line);
    options.onEvent?.(line);
  };
  let allocationId: string | undefined;
  const people: Person[] = [];
  try {
    const steps = await startSteps(pair, { scratch, count });
    report(`${count} steps run`);
    allocationId = await createUser(pair);
    for (let at = 0; at < count; at += OPENED_AT_ONCE) {
      const some = Array.from({ length: Math.min(OPENED_AT_ONCE, count - at) }, () => sitDown(pair, allocationId));
      people.push(...some);
      await Promise.all(some.map(({ ready }) => ready()));
      await Promise.all(some.map(({ type }) => type()));
    }
    report(`${count} shells are open`);
    const everybody = () => Promise.all(people.map(({ type }) => type()));
    await roll(pair, { steps, everybody, report });
    await loseRedis(pair, { steps, everybody, report });
    const judged = await steps.end();
    const { items } = await pair.call(listTerminals, { query: { state: "open", limit: 200 } });
    const interrupted = people.flatMap(({ problem }) => problem() ?? []);
    if (items.length !== count) interrupted.push(`${items.length} of ${count} shells are open`);
    report("ended");
    return {
      ...{ executions: { held: count, meanwhile: judged.steps - count }, shells: count },
      ...{ typed: people.reduce((sum, { typed }) => sum + typed(), 0), events },
      ...{ lost: judged.lost, notOnce: judged.notOnce, interrupted },
    };
  } finally {
    for (const { leave } of people) leave();
    if (allocationId !== undefined) await pair.installation.run(["allocation", "release", allocationId]);
    rmSync(scratch, { recursive: true, force: true });
  }
}

type Load = { steps: Steps; everybody(): Promise<unknown>; report(text: string): void };

async function roll({ gateways, redis }: GatewayPair, { steps, everybody, report }: Load): Promise<void> {
  for (const [index, gateway] of gateways.entries()) {
    await steps.progress();
    const typing = everybody();
    await gateway.stop();
    report(`gateway ${index + 1} has stopped`);
    await steps.progress();
    await typing;
    await everybody();
    report("every shell answers");
    await redis.flush();
    await gateway.ready();
    await everybody();
    await steps.progress();
    report(`gateway ${index + 1} is back`);
  }
}

async function loseRedis({ gateways, redis }: GatewayPair, { steps, everybody, report }: Load): Promise<void> {
  const reach = (gateway: PairedGateway) => gateway.metric("holdfast_gateway_store_reachable", "redis");
  await redis.stop();
  for (const gateway of gateways) await until(async () => (await reach(gateway)) === 0);
  report("Redis is lost");
  await Promise.all([everybody(), steps.progress()]);
  await redis.start();
  for (const gateway of gateways) await until(async () => (await reach(gateway)) === 1);
  report("Redis is back, and empty");
  await Promise.all([everybody(), steps.progress()]);
  await redis.flush();
  await Promise.all([everybody(), steps.progress()]);
  report("Redis was emptied");
}

type Steps = {
  /** Until more steps have ended that were dispatched meanwhile. */
  progress(): Promise<void>;
  /** Lets all of them end. */
  end(): Promise<{ steps: number; lost: string[]; notOnce: string[] }>;
};

type Marked = { mark: string; step: Step; result: Promise<ExecutionResult> };

/** As many as `count` that run until the end, and callers that dispatch one after the other. */
async function startSteps(pair: GatewayPair, options: { scratch: string; count: number }): Promise<Steps> {
  const { scratch, count } = options;
  const [trace, gate] = [join(scratch, "trace"), join(scratch, "gate")];
  for (const name of ["first", "second"])
    await connectAgent(pair, { home: join(scratch, name), name, maxInFlight: Math.ceil(count / 2) + LANES });
  let turn = 0;
  const dispatcher = createDispatcher({
    url: () => pair.gateways[turn++ % 2]?.internalUrl ?? "",
    token: pair.dispatchToken,
    random: Math.random,
  });
  const all: Marked[] = [];
  const dispatch = (hold: string): Marked => {
    const mark = `mark-${all.length + 1}`;
    const step = stepOf(pair.org, `echo ${mark} >> '${trace}'${hold}; echo ${mark}`);
    const marked = { mark, step, result: dispatcher.run(step) };
    all.push(marked);
    return marked;
  };
  for (let held = 0; held < count; held += 1) dispatch(`; until [ -e '${gate}' ]; do sleep 2; done`);
  await until(() => runsIn(trace).size === count);
  let [ended, stopped] = [0, false];
  const lanes = Array.from({ length: LANES }, async () => {
    while (!stopped) {
      await dispatch("").result;
      ended += 1;
    }
  });
  return {
    async progress() {
      const before = ended;
      await until(() => ended >= before + 2 * LANES);
    },
    async end() {
      stopped = true;
      writeFileSync(gate, "");
      await Promise.all(lanes);
      const lost = (await Promise.all(all.map((one) => problemOf(dispatcher, one)))).flatMap((one) => one ?? []);
      const runs = runsIn(trace);
      const notOnce = all.flatMap(({ mark }) => (runs.get(mark) === 1 ? [] : [`${mark}: ${runs.get(mark) ?? 0}`]));
      return { steps: all.length, lost, notOnce };
    },
  };
}

/** The answer must be the step's own, and be stored as it was given. */
async function problemOf(dispatcher: Dispatcher, { mark, step, result }: Marked): Promise<string | undefined> {
  const answered = await result;
  const stored = await dispatcher.result(step);
  const printed = (answered.output as { stdout?: string } | undefined)?.stdout;
  const isRight = answered.status === "succeeded" && printed === `${mark}\n`;
  if (isRight && JSON.stringify(stored) === JSON.stringify(answered)) return undefined;
  return `${mark}: ${JSON.stringify(answered)}, then ${JSON.stringify(stored)}`;
}

function runsIn(trace: string): Map<string, number> {
  const runs = new Map<string, number>();
  for (const mark of (readFileIfPresent(trace) ?? "").split("\n").filter(Boolean))
    runs.set(mark, (runs.get(mark) ?? 0) + 1);
  return runs;
}

function stepOf(org: string, script: string): Step {
  const [runId, nodeId] = [randomUUID(), "step"];
  const config = { task: { type: "shell", script }, sandbox: { backend: "host" } };
  const body = {
    ...{ organizationId: org, requestedByUserId: randomUUID(), runId, workflowId: randomUUID(), nodeId },
    ...{ nodeType: "agent.execute", attemptCount: 1, kind: "agent.execute" },
    payload: { nodeId, node: { id: nodeId, type: "agent.execute", config } },
    ...LONG,
  };
  return { runId, nodeId, body };
}

async function connectAgent(
  { installation, call, org, ready }: GatewayPair,
  { home, name, maxInFlight }: { home: string; name: string; maxInFlight: number },
): Promise<void> {
  mkdirSync(home);
  const params = { org_id: org };
  const { token } = await call(createAgentPairingToken, { params });
  const place = ["--pairing-token", token, "--api-base", ready.api_url, "--name", name];
  installation.start(["agent", "connect", ...place, "--max-in-flight", String(maxInFlight)], {
    ...{ HOME: home, ...hostBackend },
  });
  await until(async () => {
    const { agents } = await call(listAgents, { params });
    return agents.some((one) => one.name === name && one.status === "online");
  });
}

/** A user of this machine, with whose shells people work. */
async function createUser({ call }: GatewayPair): Promise<string> {
  let nodeId: string | undefined;
  await until(async () => {
    nodeId = (await call(listNodes, {})).items.find(({ connection }) => connection === "online")?.id;
    return nodeId !== undefined;
  });
  const username = `hft-${randomBytes(5).toString("hex")}`;
  const { id } = await call(createAllocation, { body: { node_id: nodeId ?? "", username } });
  await until(async () => (await call(getAllocation, { params: { allocation_id: id } })).status === "active");
  return id;
}

type Person = {
  /** The shell takes input. */
  ready(): Promise<void>;
  /** Types a line, also while the terminal is being reconnected; resolves when its answer is shown. */
  type(): Promise<void>;
  typed(): number;
  /** Undefined: the shell is the one of the beginning, and got every line once. */
  problem(): string | undefined;
  leave(): void;
};

/** Nothing follows. */
const over: ReadonlySet<string> = new Set(["ended", "failed", "stopped"]);

/** At a terminal of the user. The shell counts the lines that it gets. */
function sitDown({ call, ready, token }: GatewayPair, allocationId = ""): Person {
  let shown = "";
  let [typed, shell, problem]: [number, string | undefined, string | undefined] = [0, undefined, undefined];
  const client = openTerminalClient<Buffer>({
    shell: undefined,
    environment: commandEnvironment(call, { url: ready.api_url, token }, { allocationId }),
    display: {
      start: () => undefined,
      write(bytes, done) {
        shown += bytes.toString();
        done();
      },
    },
    onState: () => undefined,
  });
  client.resize({ cols: 200, rows: 24 });
  return {
    ready: () => until(() => client.state().phase === "ready" || over.has(client.state().phase)),
    async type() {
      const mark = randomBytes(6).toString("hex");
      const answer = new RegExp(`\\{(\\d+) (\\d+)\\}${mark}`);
      client.write(Buffer.from(`n=$((n+1)); echo {$$ $n}${mark.slice(0, 6)}''${mark.slice(6)}\r`));
      typed += 1;
      const giveUpAt = Date.now() + ANSWER_MS;
      await until(() => answer.test(shown) || over.has(client.state().phase) || Date.now() > giveUpAt);
      const [, pid, count] = answer.exec(shown) ?? [];
      shell ??= pid;
      if (pid === undefined) problem ??= `line ${typed} has no answer; the terminal is ${client.state().phase}`;
      else if (pid !== shell) problem ??= `line ${typed} was answered by another shell`;
      else if (Number(count) !== typed) problem ??= `line ${typed} is line ${count} of the shell`;
    },
    typed: () => typed,
    problem: () => problem,
    leave: () => client.leave(),
  };
}
