// Runs of ten steps that do nothing, a hundred at once, beside a chain of ten jobs written by hand on a job library; a run of three steps on
// an agent; and what a hundred thousand runs that wait cost.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { pathsIn } from "@holdfast/cli/up/data-directory";
import { readUpFile } from "@holdfast/cli/up/up-file";
import { type Client, createClient } from "@holdfast/contracts/client";
import { getMe } from "@holdfast/contracts/endpoints/me";
import { getRun, listRuns, startRun } from "@holdfast/contracts/endpoints/runs";
import { applyWorkflow, publishWorkflow } from "@holdfast/contracts/endpoints/workflows";
import { databaseName, roles } from "@holdfast/control-plane/database/embedded/credentials";
import { socketUrl } from "@holdfast/control-plane/database/embedded/socket-url";
import { openSql, type Sql } from "@holdfast/control-plane/database/sql/sql";
import type { Bench, Measured } from "../bench.ts";
import { startHoldfast } from "../holdfast.ts";
import type { Lab } from "../lab.ts";
import { installPeer } from "../npm-peers.ts";
import type { JobChain } from "../peers/job-chain.ts";
import { freePort } from "../ports.ts";
import { processorSecondsOfAll } from "../processes.ts";
import type { StepAgents } from "../programs/step-agents.ts";
import { median } from "../report.ts";

const STEPS = 10;
const RUNS = 100;
const WAITING = 100_000;
const REST_SECONDS = 60;
const graphile = "a chain of jobs on graphile-worker";
const pgBoss = "a chain of jobs on pg-boss, woken by NOTIFY";
const alone = "the same installation without them";
const figures = {
  p50: `${RUNS} runs of ${STEPS} steps at once, p50`,
  rate: `${RUNS} runs of ${STEPS} steps at once, runs in a second`,
  keptP50: "the same with steps that are written before they begin, p50",
  keptRate: "the same with steps that are written before they begin, runs in a second",
  p50Boss: "the same beside pg-boss, p50",
  rateBoss: "the same beside pg-boss, runs in a second",
  agent: "one run of 3 steps on an agent, p50",
  rest: `processor of worker and PostgreSQL with ${WAITING} waiting runs, over ${REST_SECONDS} s`,
  due: `start of a run beside ${WAITING} waiting ones`,
};

export const workflow: Bench = {
  name: "workflow",
  summary: "runs of workflows: latency, throughput, and what waiting runs cost",
  figures: [
    { name: figures.p50, unit: "ms", better: "lower", peer: graphile, target: { of: "ratio", value: 1.5 } },
    { name: figures.rate, unit: "1/s", better: "higher", peer: graphile, target: { of: "ratio", value: 0.7 } },
    { name: figures.keptP50, unit: "ms", better: "lower", peer: graphile, target: { of: "ratio", value: 1.5 } },
    { name: figures.keptRate, unit: "1/s", better: "higher", peer: graphile, target: { of: "ratio", value: 0.7 } },
    { name: figures.p50Boss, unit: "ms", better: "lower", peer: pgBoss },
    { name: figures.rateBoss, unit: "1/s", better: "higher", peer: pgBoss },
    { name: figures.agent, unit: "ms", better: "lower", peer: alone },
    { name: figures.rest, unit: "%", better: "lower", peer: alone },
    { name: figures.due, unit: "ms", better: "lower", peer: alone, target: { of: "ours", value: 2_000 } },
  ],
  passes: 5,
  prepare: async (lab) => {
    const ours = await startOurs(lab);
    const [first, second] = await Promise.all([startPeer(lab, "graphile-worker"), startPeer(lab, "pg-boss")]);
    // Takes minutes, so once for all passes, and before anything waits.
    let atRest: Promise<{ without: Rest; beside: Rest }> | undefined;
    const rest = () => {
      atRest ??= ours.measureRest();
      return atRest;
    };
    return {
      ours: async () => {
        const { beside } = await rest();
        const { p50, perSecond } = await ours.runMany();
        const kept = await ours.runManyKept();
        return {
          ...{
            [figures.p50]: p50,
            [figures.rate]: perSecond,
            [figures.p50Boss]: p50,
            [figures.rateBoss]: perSecond,
            [figures.keptP50]: kept.p50,
            [figures.keptRate]: kept.perSecond,
          },
          ...{
            [figures.agent]: await ours.runOnAgent(),
            [figures.rest]: beside.percent,
            [figures.due]: beside.dueMs,
          },
        };
      },
      theirs: async () => {
        const { without } = await rest();
        const [one, two] = [await ask(first), await ask(second)];
        return {
          ...{ [figures.p50]: one.p50, [figures.rate]: one.perSecond, [figures.p50Boss]: two.p50 },
          ...{ [figures.keptP50]: one.p50, [figures.keptRate]: one.perSecond },
          ...{ [figures.rateBoss]: two.perSecond, [figures.agent]: without.agentMs },
          ...{ [figures.rest]: without.percent, [figures.due]: without.dueMs },
        } satisfies Measured;
      },
    };
  },
};

type Many = { p50: number; perSecond: number };
type Rest = { percent: number; dueMs: number; agentMs: number };

const ask = async (url: string) => (await (await fetch(url)).json()) as Many;

async function startPeer(lab: Lab, library: JobChain["library"]): Promise<string> {
  // Here and not in the peer's process, whose environment does not say how npm reaches its registry.
  const { directory: installed } = await installPeer(library);
  const options: JobChain = { library, installed, directory: lab.directory(), steps: STEPS, chains: RUNS };
  const running = lab.start({
    command: process.execPath,
    args: [fileURLToPath(new URL("../peers/job-chain.ts", import.meta.url))],
    env: { BENCH_PEER: JSON.stringify(options) },
  });
  return ((await running.ready) as { url: string }).url;
}

async function startOurs(lab: Lab) {
  const dataDirectory = join(lab.directory(), "data");
  const { apiUrl } = await startHoldfast(lab, {
    dataDirectory,
    settings: {
      HOLDFAST_UP_AGENT: "no",
      // With a port that is known before, the worker can dispatch.
      HOLDFAST_GATEWAY_INTERNAL_PORT: String(await freePort()),
      HOLDFAST_DISPATCH_TOKEN: "bench-dispatch-token",
    },
  });
  const operatorToken = readFileSync(pathsIn(dataDirectory).operatorToken, "utf8").trim();
  const call = createClient({ baseUrl: apiUrl, token: operatorToken });
  const orgId = (await call(getMe, {})).organizations[0]?.id ?? "";
  const agents: StepAgents = {
    apiUrl,
    operatorToken,
    orgId,
    tag: "bench",
    agents: 1,
    maxInFlight: 32,
    directory: lab.directory(),
  };
  await lab.start({
    command: process.execPath,
    args: [fileURLToPath(new URL("../programs/step-agents.ts", import.meta.url))],
    env: { BENCH_OURS: JSON.stringify(agents) },
  }).ready;
  const chain = (count: number, execution: object, more: object = {}) => {
    const step = (index: number) => ({
      ...{ type: "connector.action", connector: "echo", action: "echo", execution, ...more },
      ...(index === 0 ? {} : { after: [`n${index - 1}`] }),
    });
    return {
      version: "1",
      nodes: Object.fromEntries(Array.from({ length: count }, (_, index) => [`n${index}`, step(index)])),
    };
  };
  const cloud = await publish(call, "ten", chain(STEPS, { mode: "cloud" }));
  // As a step with an effect outside: its beginning is on the disk before it begins.
  const kept = await publish(call, "ten-kept", chain(STEPS, { mode: "cloud" }, { effect: "at-most-once" }));
  const onAgent = await publish(call, "three", chain(3, { mode: "node", selector: { tag: "bench" } }));
  const waiting = await publish(call, "wait", { version: "1", nodes: { pause: { type: "wait", for: "300d" } } });
  const pids = () => {
    const worker = readUpFile(pathsIn(dataDirectory).upFile)?.children["worker"]?.pid;
    const postgres = Number(
      readFileSync(join(dataDirectory, "postgres/data/postmaster.pid"), "utf8").split("\n")[0],
    );
    return [worker ?? 0, postgres];
  };
  const runOnAgent = async () => {
    const times: number[] = [];
    for (let count = 0; count < 10; count += 1) times.push((await runOne(call, onAgent)).took);
    return median(times);
  };
  const rest = async (): Promise<Rest> => {
    const seconds = () => pids().reduce((sum, pid) => sum + processorSecondsOfAll(pid), 0);
    await wait(10_000);
    const before = seconds();
    await wait(REST_SECONDS * 1000);
    const percent = ((seconds() - before) / REST_SECONDS) * 100;
    const starts: number[] = [];
    for (let count = 0; count < 5; count += 1) starts.push((await runOne(call, cloud)).started);
    return { percent, dueMs: median(starts), agentMs: await runOnAgent() };
  };
  return {
    runMany: () => runMany(call, cloud),
    runManyKept: () => runMany(call, kept),
    runOnAgent,
    async measureRest() {
      const without = await rest();
      await addWaiting(lab, dataDirectory, { call, workflow: waiting });
      return { without, beside: await rest() };
    },
  };
}

async function publish(call: Client, name: string, document: object): Promise<string> {
  const { id } = await call(applyWorkflow, { body: { name, source: JSON.stringify(document) } });
  await call(publishWorkflow, { params: { workflow_id: id }, body: {} });
  return id;
}

const between = (from: string, to: string | null) => Date.parse(to ?? "") - Date.parse(from);

async function runOne(call: Client, workflow_id: string): Promise<{ took: number; started: number }> {
  const { id } = await call(startRun, { params: { workflow_id }, body: {} });
  for (;;) {
    const run = await call(getRun, { params: { run_id: id } });
    if (run.status === "succeeded") {
      return { took: between(run.created_at, run.finished_at), started: between(run.created_at, run.started_at) };
    }
    if (run.finished_at !== null) throw new Error(`a run ended as ${run.failure?.message ?? run.status}`);
    await wait(20);
  }
}

/** By the times in the database: looking on costs the contestants nothing while they run. */
async function runMany(call: Client, workflow_id: string): Promise<Many> {
  const started = await Promise.all(
    Array.from({ length: RUNS }, () => call(startRun, { params: { workflow_id }, body: {} })),
  );
  const ids = new Set(started.map(({ id }) => id));
  for (;;) {
    const { items } = await call(listRuns, { query: { workflow_id, limit: RUNS } });
    const ours = items.filter(({ id, finished_at }) => ids.has(id) && finished_at !== null);
    if (ours.length === RUNS) {
      const first = Math.min(...ours.map(({ created_at }) => Date.parse(created_at)));
      const last = Math.max(...ours.map(({ finished_at }) => Date.parse(finished_at ?? "")));
      const took = ours.map(({ created_at, finished_at }) => between(created_at, finished_at));
      return { p50: median(took), perSecond: RUNS / ((last - first) / 1000) };
    }
    await wait(100);
  }
}

/** One run that waits, as the engine left it, and copies of it. */
async function addWaiting(
  lab: Lab,
  dataDirectory: string,
  { call, workflow: workflow_id }: { call: Client; workflow: string },
) {
  const { id } = await call(startRun, { params: { workflow_id }, body: {} });
  const isWaiting = async () => (await call(getRun, { params: { run_id: id } })).nodes[0]?.status === "waiting";
  while (!(await isWaiting())) await wait(100);
  await wait(1_000);
  const sql = openDatabase(dataDirectory);
  lab.onClose(() => sql.end({ timeout: 1 }));
  await sql`
    INSERT INTO workflow_runs (id, org_id, workflow_id, version, status, input, cursor, last_seq, wake_at, claim, user_id, actor_type,
      actor_name, role, correlation_id, started_at, deadline_at)
    SELECT gen_random_uuid(), org_id, workflow_id, version, status, input, cursor, last_seq, wake_at, claim, user_id, actor_type,
      actor_name, role, correlation_id, started_at, deadline_at
    FROM workflow_runs, generate_series(2, ${WAITING}) WHERE id = ${id}`;
  await sql`VACUUM ANALYZE workflow_runs`;
}

function openDatabase(dataDirectory: string): Sql {
  const directory = join(dataDirectory, "postgres");
  const { superuser: password } = JSON.parse(readFileSync(join(directory, "credentials.json"), "utf8")) as {
    superuser: string;
  };
  return openSql({
    url: socketUrl({ user: roles.superuser, password, directory: join(directory, "run"), database: databaseName }),
    ...{ max: 1, application: "bench", connectTimeoutSeconds: 60, parameters: { search_path: "holdfast" } },
  });
}
