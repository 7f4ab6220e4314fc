// From the dispatch of a step at the gateway to its result: an echo on one agent and among a hundred, through worker, gateway, api,
// PostgreSQL and agent, beside our own tasks, which need no gateway, and BullMQ.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { pathsIn } from "@holdfast/cli/up/data-directory";
import { createClient } from "@holdfast/contracts/client";
import { getMe } from "@holdfast/contracts/endpoints/me";
import type { Bench, Measured } from "../bench.ts";
import { startHoldfast } from "../holdfast.ts";
import type { Lab } from "../lab.ts";
import { freePort } from "../ports.ts";
import type { StepAgents } from "../programs/step-agents.ts";
import type { StepDispatcher } from "../programs/step-dispatcher.ts";
import type { TaskProducer } from "../programs/task-producer.ts";
import { missingRedis } from "../redis.ts";
import { askForRoundTrips } from "../round-trips.ts";
import { startBullmq } from "./dispatch.ts";

const amounts = { single: 300, many: 2_000, inFlight: 32 };
const tasks = "our own tasks, from a producer inside the api";
const bullmq = "BullMQ, Redis with appendfsync everysec";
const figures = {
  p50: "one agent, one at a time, p50",
  p99: "one agent, one at a time, p99",
  rate: `one agent, ${amounts.inFlight} in flight`,
  p50Many: "100 agents, one at a time, p50",
  rateMany: `100 agents, ${amounts.inFlight} in flight`,
  p50Bullmq: "one agent, one at a time, p50, beside BullMQ",
  rateBullmq: `one agent, ${amounts.inFlight} in flight, beside BullMQ`,
};
const p50Target = { of: "ratio", value: 1.3 } as const;
const rateTarget = { of: "ratio", value: 1 } as const;

export const execute: Bench = {
  name: "execute",
  summary: "a step that echoes, from its dispatch at the gateway to its result: latency and throughput",
  figures: [
    { name: figures.p50, unit: "ms", better: "lower", peer: tasks, target: p50Target },
    { name: figures.p99, unit: "ms", better: "lower", peer: tasks },
    { name: figures.rate, unit: "1/s", better: "higher", peer: tasks, target: rateTarget },
    { name: figures.p50Many, unit: "ms", better: "lower", peer: tasks, target: p50Target },
    { name: figures.rateMany, unit: "1/s", better: "higher", peer: tasks, target: rateTarget },
    { name: figures.p50Bullmq, unit: "ms", better: "lower", peer: bullmq },
    { name: figures.rateBullmq, unit: "1/s", better: "higher", peer: bullmq },
  ],
  passes: 7,
  prepare: async (lab) => {
    const ours = await startOurs(lab);
    const producer = await start<{ url: string }>(lab, "task-producer", {
      directory: lab.directory(),
      ...amounts,
    } satisfies TaskProducer);
    const queue = missingRedis() === undefined ? await startBullmq(lab, "everysec", amounts) : undefined;
    return {
      ours: async () => {
        const one = await askForRoundTrips(ours.one);
        const many = await askForRoundTrips(ours.many);
        return measured({
          ...{ p50: one.p50, p99: one.p99, rate: one.perSecond, p50Bullmq: one.p50, rateBullmq: one.perSecond },
          ...{ p50Many: many.p50, rateMany: many.perSecond },
        });
      },
      theirs: async () => {
        const { p50, p99, perSecond: rate } = await askForRoundTrips(producer.url);
        const own = { p50, p99, rate, p50Many: p50, rateMany: rate };
        if (!queue) return measured(own);
        const other = await askForRoundTrips(queue);
        return measured({ ...own, p50Bullmq: other.p50, rateBullmq: other.perSecond });
      },
      ...(queue ? {} : { absent: { [bullmq]: missingRedis() ?? "" } }),
    };
  },
};

function measured(values: Partial<Record<keyof typeof figures, number>>): Measured {
  return Object.fromEntries(
    Object.entries(values).map(([key, value]) => [figures[key as keyof typeof figures], value]),
  );
}

/** A whole installation with agents in processes of their own; each dispatcher chooses its agents by tag. */
async function startOurs(lab: Lab): Promise<{ one: string; many: string }> {
  const dataDirectory = join(lab.directory(), "data");
  const internalPort = await freePort();
  const token = "bench-dispatch-token";
  const { apiUrl } = await startHoldfast(lab, {
    dataDirectory,
    settings: { HOLDFAST_GATEWAY_INTERNAL_PORT: String(internalPort), HOLDFAST_DISPATCH_TOKEN: token },
  });
  const operatorToken = readFileSync(pathsIn(dataDirectory).operatorToken, "utf8").trim();
  const me = await createClient({ baseUrl: apiUrl, token: operatorToken })(getMe, {});
  const orgId = me.organizations[0]?.id ?? "";
  const place = { apiUrl, operatorToken, orgId };
  const group = async (tag: string, agents: number, maxInFlight: number): Promise<string> => {
    const agentOptions: StepAgents = { ...place, tag, agents, maxInFlight, directory: lab.directory() };
    await start(lab, "step-agents", agentOptions);
    const url = `http://127.0.0.1:${internalPort}`;
    const options: StepDispatcher = { url, token, orgId, tag, ...amounts };
    return (await start<{ url: string }>(lab, "step-dispatcher", options)).url;
  };
  return { one: await group("one", 1, amounts.inFlight), many: await group("many", 100, 10) };
}

async function start<Ready>(lab: Lab, program: string, options: object): Promise<Ready> {
  const running = lab.start({
    command: process.execPath,
    args: [fileURLToPath(new URL(`../programs/${program}.ts`, import.meta.url))],
    env: { BENCH_OURS: JSON.stringify(options) },
  });
  return (await running.ready) as Ready;
}
