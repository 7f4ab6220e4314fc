// Runs workflows with steps in the worker and on an agent while worker, api, gateway, agent and postmaster are killed by turns, each right
// after an event of a run was seen. Every effect is a line in a file that neither product nor database knows. Afterwards each run must
// have ended once, no effect may have happened twice, and the events of each run must give the state that is shown.

import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { type Client, createClient } from "@holdfast/contracts/client";
import { createAgentPairingToken, listAgents } from "@holdfast/contracts/endpoints/agents";
import { getMe } from "@holdfast/contracts/endpoints/me";
import { getRun, listRunEvents, type RunEventEntry, startRun } from "@holdfast/contracts/endpoints/runs";
import { applyWorkflow, publishWorkflow } from "@holdfast/contracts/endpoints/workflows";
import { readWorkflow } from "@holdfast/workflows/document/read";
import type { WorkflowDocument } from "@holdfast/workflows/document/schema";
import type { RunEvent } from "@holdfast/workflows/run/events";
import { rebuild } from "@holdfast/workflows/run/state";
import { hostBackend } from "../../../node-agent/test/support/host-backend.ts";
import { freePorts } from "../../../testkit/processes/free-ports.ts";
import { type Installation, openInstallation, until } from "../../../testkit/processes/holdfast.ts";
import { type Staying, stayRunning } from "../support/staying.ts";
import { randomFrom } from "./random.ts";

const victims = ["worker", "api", "gateway", "agent", "postmaster"] as const;
type Victim = (typeof victims)[number];

export type WorkflowTortureReport = {
  seed: number;
  kills: Record<Victim, number>;
  /** After which events something was killed. */
  after: Record<string, number>;
  runs: number;
  /** By how they ended. */
  ended: Record<string, number>;
  /** Runs without exactly one end. */
  notOnce: string[];
  /** Effects that happened more than once. */
  repeated: string[];
  /** Steps that succeeded without an effect. */
  untraced: string[];
  /** Runs whose events do not give the state that is shown. */
  different: string[];
};

const LANES = 3;
const TIMEOUT = "300s";
/** Each of them leaves a line, as `run:node`. */
const effects = ["first", "charge", "notify", "last"];

function documentFor(trace: string, url: string): string {
  const script = (node: string) => `echo '\${{ run.id }}:${node}' >> '${trace}'; sleep 0.3`;
  const shell = (node: string, after: string[]) => ({
    ...{ type: "agent.execute", script: script(node), sandbox: { backend: "host" }, timeout: TIMEOUT },
    ...(after.length > 0 ? { after } : {}),
  });
  const request = (node: string, more: object) => ({
    ...{ type: "http.request", method: "POST", url, timeout: TIMEOUT, body: `\${{ run.id }}:${node}`, ...more },
  });
  return JSON.stringify({
    version: "1",
    nodes: {
      first: shell("first", []),
      check: { type: "condition", after: ["first"], if: "input.number >= 0" },
      // May run once only: cut short, its outcome is unknown, and it is never repeated.
      charge: request("charge", { after: ["check.true"] }),
      notify: request("notify", { after: ["check.true"], effect: "idempotent", retry: { attempts: 3 } }),
      pause: { type: "wait", for: "1s", after: ["check.true"] },
      together: { type: "join", after: ["notify", "pause"] },
      last: shell("last", ["together"]),
    },
  });
}

export async function tortureWorkflows(options: {
  kills: number;
  seed: number;
  onKill?(text: string): void;
}): Promise<WorkflowTortureReport> {
  const installation = openInstallation();
  const trace = join(installation.dataDir, "..", "trace");
  writeFileSync(trace, "");
  const receiver = await startReceiver(trace);
  let agent: Staying | undefined;
  try {
    const [api, gateway, internal] = await freePorts<[number, number, number]>(3);
    const ready = await installation.up({
      ...{ HOLDFAST_UP_AGENT: "no", HOLDFAST_API_PORT: String(api), HOLDFAST_GATEWAY_PORT: String(gateway) },
      HOLDFAST_GATEWAY_INTERNAL_PORT: String(internal),
      ...{ HOLDFAST_NOTIFY_ALLOW_PRIVATE: "127.0.0.1", WORKFLOW_CONTINUATION_POLL_MS: "500" },
    }).ready;
    const token = readFileSync(join(installation.dataDir, "operator-token"), "utf8").trim();
    const call = patient(createClient({ baseUrl: ready.api_url, token }));
    agent = await connectAgent(installation, call, ready.api_url);
    const source = documentFor(trace, `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`);
    const lanes = await startLanes(call, source);
    const killed = await killAfterEvents({ ...options, installation, agent, lanes });
    await lanes.stop();
    return { seed: options.seed, ...killed, ...(await judge(call, { source, trace, runs: lanes.runs })) };
  } finally {
    await agent?.stop();
    await installation.cleanUp();
    receiver.closeAllConnections();
    receiver.close();
  }
}

/** Repeats what an outage cut short. Every call here may be repeated. */
function patient(client: Client): Client {
  return (async (...args: Parameters<Client>) => {
    for (const until = Date.now() + 180_000; ; ) {
      try {
        return await client(...args);
      } catch (error) {
        const { retryable, status } = error as { retryable?: boolean; status?: number };
        if ((status !== undefined && status < 500 && !retryable) || Date.now() > until) throw error;
        await wait(50);
      }
    }
  }) as Client;
}

/** An idempotent receiver: a key that it knows has no further effect. */
async function startReceiver(trace: string): Promise<Server> {
  const known = new Set<string>();
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", async () => {
      const key = String(request.headers["idempotency-key"]);
      const mark = Buffer.concat(chunks).toString();
      if (!mark.endsWith(":notify") || !known.has(key)) appendFileSync(trace, `${mark}\n`);
      known.add(key);
      await wait(200);
      response.end("{}");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

async function connectAgent(installation: Installation, call: Client, apiUrl: string): Promise<Staying> {
  const params = { org_id: (await call(getMe, {})).organizations[0]?.id ?? "" };
  const { token } = await call(createAgentPairingToken, { params });
  const env = {
    HOLDFAST_EXECUTION_CREDENTIALS: join(installation.dataDir, "execution-agent.json"),
    HOLDFAST_EXECUTION_WORKDIR_ROOT: join(installation.dataDir, "execution-work"),
    ...hostBackend,
  };
  const connect = (...args: string[]) => installation.start(["agent", "connect", ...args], env);
  const agent = stayRunning(() => connect("--pairing-token", token, "--api-base", apiUrl), connect);
  await until(async () => (await call(listAgents, { params })).agents.some(({ status }) => status === "online"));
  return agent;
}

type Lanes = { runs: string[]; nextEvent(): Promise<string>; stop(): Promise<void> };

const isEnd = (type: string) => /^run_(succeeded|failed|cancelled)$/.test(type);

/** Each starts a run, follows its events to the end, and starts the next one. */
async function startLanes(call: Client, source: string): Promise<Lanes> {
  const { id: workflow_id } = await call(applyWorkflow, { body: { name: "torture", source } });
  await call(publishWorkflow, { params: { workflow_id }, body: {} });
  const runs: string[] = [];
  let stopping = false;
  let seen = Promise.withResolvers<string>();
  const run = async (lane: number) => {
    for (let number = 0; !stopping; number += 1) {
      const idempotencyKey = `torture-${lane}-${number}`;
      const body = { input: { number } as never };
      const { id } = await call(startRun, { params: { workflow_id }, body, idempotencyKey });
      runs.push(id);
      for (let after = 0, over = false; !over; ) {
        const { items } = await call(listRunEvents, { params: { run_id: id }, query: { after } });
        for (const { type, seq } of items) {
          after = seq;
          over ||= isEnd(type);
          seen.resolve(type);
        }
        if (items.length === 0) await wait(20);
      }
    }
  };
  const running = Array.from({ length: LANES }, (_, lane) => run(lane));
  const failed = Promise.all(running);
  return {
    runs,
    nextEvent() {
      seen = Promise.withResolvers();
      return Promise.race([seen.promise, failed.then(() => "nothing")]);
    },
    async stop() {
      stopping = true;
      await failed;
    },
  };
}

async function killAfterEvents(stage: {
  kills: number;
  seed: number;
  onKill?(text: string): void;
  installation: Installation;
  agent: Staying;
  lanes: Lanes;
}): Promise<Pick<WorkflowTortureReport, "kills" | "after">> {
  const random = randomFrom(stage.seed);
  const kills = Object.fromEntries(victims.map((victim) => [victim, 0])) as Record<Victim, number>;
  const after: Record<string, number> = {};
  for (let count = 0; count < stage.kills; ) {
    // A random number of events is let pass, so that every kind of event meets every kind of kill.
    let type = await stage.lanes.nextEvent();
    for (let pass = Math.floor(random() * 4); pass > 0; pass -= 1) type = await stage.lanes.nextEvent();
    const victim = victims[count % victims.length] ?? "worker";
    const pid = pidOf(stage, victim);
    if (!pid || !kill(pid)) {
      await wait(20);
      continue;
    }
    kills[victim] += 1;
    after[type] = (after[type] ?? 0) + 1;
    count += 1;
    stage.onKill?.(`kill ${count}: ${victim} after ${type}, ${stage.lanes.runs.length} runs`);
  }
  return { kills, after };
}

function pidOf({ installation, agent }: { installation: Installation; agent: Staying }, victim: Victim) {
  if (victim === "agent") return agent.pid();
  return victim === "postmaster" ? installation.postmaster() : installation.upFile().children[victim]?.pid;
}

function kill(pid: number): boolean {
  try {
    process.kill(pid, "SIGKILL");
    return true;
  } catch {
    return false;
  }
}

async function judge(call: Client, { source, trace, runs }: { source: string; trace: string; runs: string[] }) {
  const read = readWorkflow(source);
  if (!read.ok) throw new Error("the document is not valid");
  const counts = new Map<string, number>();
  for (const mark of readFileSync(trace, "utf8").trim().split("\n")) counts.set(mark, (counts.get(mark) ?? 0) + 1);
  const judged = { ended: {} as Record<string, number>, notOnce: [] as string[], different: [] as string[] };
  const untraced: string[] = [];
  for (const run_id of runs) {
    const shown = await call(getRun, { params: { run_id } });
    const { items } = await call(listRunEvents, { params: { run_id } });
    const how = shown.failure?.code ?? shown.status;
    judged.ended[how] = (judged.ended[how] ?? 0) + 1;
    if (items.filter(({ type }) => isEnd(type)).length !== 1) judged.notOnce.push(run_id);
    if (!isRebuilt(read.document, items, shown)) judged.different.push(run_id);
    const done = shown.nodes.filter(({ id, status }) => status === "succeeded" && effects.includes(id));
    untraced.push(...done.map(({ id }) => `${run_id}:${id}`).filter((mark) => !counts.has(mark)));
  }
  const repeated = [...counts].flatMap(([mark, count]) => (count > 1 ? [`${mark} ${count} times`] : []));
  return { runs: runs.length, ...judged, repeated, untraced };
}

type Shown = { status: string; nodes: { id: string; status: string; attempt: number | null; output: unknown }[] };

function isRebuilt(document: WorkflowDocument, items: readonly RunEventEntry[], shown: Shown): boolean {
  const events = items.map(({ type, node, attempt, data }) => {
    return {
      type,
      ...(node === null ? {} : { node }),
      ...(attempt === null ? {} : { attempt }),
      ...data,
    } as RunEvent;
  });
  const { status, nodes } = rebuild(document, events);
  const briefly = (one: { status: string; attempt?: number | null; output?: unknown }) =>
    JSON.stringify([one.status, one.attempt ?? null, one.output ?? null]);
  return (
    status === shown.status &&
    shown.nodes.every((node) => briefly(node) === briefly(nodes[node.id] ?? { status: "missing" }))
  );
}
