// Ten thousand agents on one api process: what each costs at rest, how long a task for everybody takes, and how the
// fleet comes back after the api was killed. Nobody else can be measured here at that size: what others publish
// stands in the README. The latency of one node is set beside that in an empty fleet, everything beside a bare server of
// mutual TLS.

import type { Bench, FigureSpec, Measured } from "../bench.ts";
import { type Installation, startInstallation } from "../fleet/installation.ts";
import { afterKill, atRest, oneNode, taskForEach } from "../fleet/measures.ts";
import { type BareFleet, meanOf, measureBareFleet } from "../floors/bare-fleet.ts";
import type { Lab } from "../lab.ts";
import { residentKb } from "../processes.ts";

/** A smaller fleet, for a quick look: the targets are for the usual one. */
const sizes = (process.env["HOLDFAST_BENCH_AGENTS"] ?? "1000,3000,10000").split(",").map(Number);
const largest = Math.max(...sizes);
const nobody = "none";
const empty = "the same with one node in the fleet";
const bare = "a bare https server of Node.js that holds connections of mutual TLS";

const figures = {
  memory: (agents: number) => `memory of the api per agent, of ${agents}`,
  processor: (agents: number) => `processor of the api at rest, ${agents} agents`,
  each: (agents: number) => `a task for each of ${agents}`,
  joins: `joins, up to ${largest}`,
  joinsByProcessor: "joins in a second of the api's processor time",
  back: `all ${largest} back after kill -9`,
  backLatency: "a task meanwhile, on a node that is back, p99",
  restarted: `memory of that api per agent, of ${largest}`,
  one: `one node among ${largest}, enqueue to result p50`,
};

const floors = {
  rest: "as many bare streams that are answered a heartbeat every 60 s (1,000 measured)",
  each: "a push to each bare stream and its answer (1,000 measured)",
  dial: "as many handshakes with the bare server (1,000 measured)",
  push: "a push and its answer on one bare stream, and two durable commits of one row",
};

const target = (value: number) => ({ target: { of: "ours", value } }) as const;
const perSize = (agents: number): FigureSpec[] => {
  const asked = agents === largest;
  const common = { better: "lower", peer: nobody } as const;
  const memory = { name: figures.memory(agents), unit: "KB", better: "lower", peer: bare, floor: bare } as const;
  return [
    { ...memory, ...(asked ? { target: { of: "over_floor", value: 1.25 } } : {}) },
    { name: figures.processor(agents), unit: "%", ...common, floor: floors.rest, ...(asked ? target(15) : {}) },
    { name: figures.each(agents), unit: "s", ...common, floor: floors.each, ...(asked ? target(8) : {}) },
  ];
};

export const fleet: Bench = {
  name: "fleet",
  summary: `${largest} simulated agents on one api process: memory, processor, a task for each, the api killed`,
  figures: [
    ...sizes.flatMap(perSize),
    { name: figures.joins, unit: "1/s", better: "higher", peer: nobody, floor: floors.dial },
    {
      name: figures.joinsByProcessor,
      unit: "1/s",
      better: "higher",
      peer: nobody,
      floor: floors.dial,
      ...target(100),
    },
    { name: figures.back, unit: "s", better: "lower", peer: nobody, floor: floors.dial, ...target(30) },
    { name: figures.backLatency, unit: "ms", better: "lower", peer: nobody, floor: floors.push, ...target(250) },
    { name: figures.restarted, unit: "KB", better: "lower", peer: bare, floor: bare },
    {
      ...{ name: figures.one, unit: "ms", better: "lower", peer: empty, floor: floors.push },
      target: { of: "ratio", value: 1.5 },
    },
  ],
  passes: 1,
  prepare: async (lab) => {
    // A fleet grows once in a run: every pass tells the same.
    const measured = measure(lab);
    // Whoever asks hears of it; after Ctrl-C nobody does.
    measured.catch(() => undefined);
    return {
      ours: async () => (await measured).ours,
      theirs: async () => (await measured).theirs,
      floor: async () => (await measured).floor,
      absent: { [nobody]: "see what others publish in bench/README.md" },
    };
  },
};

async function measure(lab: Lab): Promise<{ ours: Measured; theirs: Measured; floor: Measured }> {
  const bareBefore = await measureBareFleet(lab);
  const installation = await startInstallation(lab);
  await installation.grow(1);
  // Warm: code is compiled, connections are open.
  await oneNode(installation);
  const alone = await oneNode(installation);
  const atFirst = residentKb(installation.apiPid());
  const ours: Measured = {};
  const joining = { seconds: 0, apiSeconds: 0 };
  for (const agents of sizes) {
    const { seconds, apiSeconds } = await installation.grow(agents);
    joining.seconds += seconds;
    joining.apiSeconds += apiSeconds;
    Object.assign(ours, await measureSize(installation, agents, atFirst));
  }
  ours[figures.joins] = largest / joining.seconds;
  ours[figures.joinsByProcessor] = largest / joining.apiSeconds;
  ours[figures.one] = await oneNode(installation);
  const commits = await installation.twoCommits();
  const back = await afterKill(installation, largest);
  say(`all ${largest} back: ${JSON.stringify(back)}`);
  if (back.failed > 0) throw new Error(`${back.failed} tasks of nodes that were back did not end well`);
  ours[figures.back] = back.seconds;
  ours[figures.backLatency] = back.p99;
  ours[figures.restarted] = ((await atRest(installation)).residentKb - atFirst) / largest;
  const least = meanOf(bareBefore, await measureBareFleet(lab));
  const memory = Object.fromEntries(
    [...sizes.map(figures.memory), figures.restarted].map((name) => [name, least.memory]),
  );
  return { ours, theirs: { ...memory, [figures.one]: alone }, floor: floorOf(least, commits) };
}

/** Milliseconds of both commits. */
function floorOf(bareFleet: BareFleet, commits: number): Measured {
  const { processor, dial, dialsPerProcessorSecond, each, roundTrip } = bareFleet;
  const bySize = sizes.flatMap((agents) => [
    [figures.processor(agents), processor * agents] as const,
    [figures.each(agents), each * agents] as const,
  ]);
  return {
    ...Object.fromEntries(bySize),
    [figures.joins]: 1 / dial,
    [figures.joinsByProcessor]: dialsPerProcessorSecond,
    [figures.back]: dial * largest,
    [figures.backLatency]: roundTrip.p99 + commits,
    [figures.one]: roundTrip.p50 + commits,
  };
}

async function measureSize(installation: Installation, agents: number, atFirst: number): Promise<Measured> {
  const { residentKb: resident, processor } = await atRest(installation);
  const memory = (resident - atFirst) / agents;
  say(`${agents} agents: ${memory.toFixed(0)} KB each, ${processor.toFixed(1)} % of a processor`);
  const each = await taskForEach(installation, agents);
  say(`${agents} agents: a task for each in ${each.toFixed(2)} s`);
  return {
    [figures.memory(agents)]: memory,
    [figures.processor(agents)]: processor,
    [figures.each(agents)]: each,
  };
}

function say(text: string): void {
  process.stderr.write(`${text}\n`);
}
