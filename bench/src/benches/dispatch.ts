// From enqueue to the result in the producer's hands: our whole path (validation, signature, mutual TLS,
// the agent's checks, durable commits) beside BullMQ on Redis, once with the log written every second,
// which may lose a second of work, and once with every write on the disk, which is what ours does.

import { fileURLToPath } from "node:url";
import type { Bench, Measured } from "../bench.ts";
import type { BareDispatch } from "../floors/bare-dispatch.ts";
import type { Lab } from "../lab.ts";
import type { BullmqPeer } from "../peers/bullmq.ts";
import type { TaskProducer } from "../programs/task-producer.ts";
import { missingRedis, startRedis } from "../redis.ts";
import { askForRoundTrips } from "../round-trips.ts";

const amounts = { single: 300, many: 2_000, inFlight: 32 };
const everysec = "BullMQ, Redis with appendfsync everysec";
const always = "BullMQ, Redis with appendfsync always";
const floor = "two durable commits of one row, and a push and its answer over a bare WebSocket of mutual TLS";
const figures = {
  p50: "one at a time, p50",
  p99: "one at a time, p99",
  rate: `${amounts.inFlight} in flight`,
  p50Always: "one at a time, p50, beside always",
  rateAlways: `${amounts.inFlight} in flight, beside always`,
};

export const dispatch: Bench = {
  name: "dispatch",
  summary: "a task that does nothing, from enqueue to its result: latency and throughput",
  figures: [
    { name: figures.p50, unit: "ms", better: "lower", peer: everysec, floor, target: { of: "ratio", value: 2 } },
    { name: figures.p99, unit: "ms", better: "lower", peer: everysec, floor },
    {
      name: figures.rate,
      unit: "1/s",
      better: "higher",
      peer: everysec,
      floor,
      target: { of: "ratio", value: 1 },
    },
    {
      name: figures.p50Always,
      unit: "ms",
      better: "lower",
      peer: always,
      floor,
      target: { of: "ratio", value: 1.2 },
    },
    { name: figures.rateAlways, unit: "1/s", better: "higher", peer: always, floor },
  ],
  passes: 9,
  prepare: async (lab) => {
    const ours = await startProducer(lab);
    const bare = await startFloor(lab);
    const peers = missingRedis() === undefined ? await startPeers(lab) : undefined;
    const measureBoth = async (url: string) => {
      const { p50, p99, perSecond } = await askForRoundTrips(url);
      return measured({ p50, p99, rate: perSecond, p50Always: p50, rateAlways: perSecond });
    };
    return {
      ours: () => measureBoth(ours),
      floor: () => measureBoth(bare),
      theirs: async () => {
        if (!peers) return {};
        const { p50, p99, perSecond } = await askForRoundTrips(peers.everysec);
        const strict = await askForRoundTrips(peers.always);
        return measured({ p50, p99, rate: perSecond, p50Always: strict.p50, rateAlways: strict.perSecond });
      },
      absent: absentPeers(),
    };
  },
};

function measured(values: Record<keyof typeof figures, number>): Measured {
  return Object.fromEntries(
    Object.entries(values).map(([key, value]) => [figures[key as keyof typeof figures], value]),
  );
}

async function startProducer(lab: Lab): Promise<string> {
  const options: TaskProducer = { directory: lab.directory(), ...amounts };
  const program = lab.start({
    command: process.execPath,
    args: [fileURLToPath(new URL("../programs/task-producer.ts", import.meta.url))],
    env: { BENCH_OURS: JSON.stringify(options) },
  });
  return ((await program.ready) as { url: string }).url;
}

async function startFloor(lab: Lab): Promise<string> {
  const options: BareDispatch = { directory: lab.directory(), ...amounts };
  const program = lab.start({
    command: process.execPath,
    args: [fileURLToPath(new URL("../floors/bare-dispatch.ts", import.meta.url))],
    env: { BENCH_PEER: JSON.stringify(options) },
  });
  return ((await program.ready) as { url: string }).url;
}

function absentPeers(): Record<string, string> {
  const why = missingRedis();
  return why === undefined ? {} : { [everysec]: why, [always]: why };
}

async function startPeers(lab: Lab): Promise<{ everysec: string; always: string }> {
  return {
    everysec: await startBullmq(lab, "everysec", amounts),
    always: await startBullmq(lab, "always", amounts),
  };
}

export async function startBullmq(
  lab: Lab,
  appendfsync: "everysec" | "always",
  amounts: Omit<BullmqPeer, "redisPort">,
): Promise<string> {
  const options: BullmqPeer = { redisPort: await startRedis(lab, appendfsync), ...amounts };
  const program = lab.start({
    command: process.execPath,
    args: [fileURLToPath(new URL("../peers/bullmq.ts", import.meta.url))],
    env: { BENCH_PEER: JSON.stringify(options) },
  });
  return ((await program.ready) as { url: string }).url;
}
