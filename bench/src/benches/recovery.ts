// A fleet whose certificates all expired while the control plane was down comes back without an operator: how long that
// takes, how many get a new identity in a second, and what the nodes notice that lost nothing. Hours pass by a clock that
// PostgreSQL, api and nodes share.

import { setTimeout as pause } from "node:timers/promises";
import { openWorldClock } from "@holdfast/control-plane/database/embedded/testing/world-clock";
import { recoverySettings } from "@holdfast/control-plane/recovery/settings";
import type { Bench, Measured } from "../bench.ts";
import { type Installation, startInstallation, type Witnesses } from "../fleet/installation.ts";
import type { Lab } from "../lab.ts";
import { processorSeconds, processorSecondsOfAll } from "../processes.ts";

const AGENTS = Number(process.env["HOLDFAST_BENCH_AGENTS"] ?? "10000");
/** Joined so late that their certificates outlast the outage. */
const UNAFFECTED = 50;
const LONGEST_SECONDS = 900;
/** What bounds the peak; its default unless the environment says otherwise. */
const PACE = "HOLDFAST_NODE_RECOVERIES_PER_SECOND";
const perSecond = Number(process.env[PACE] ?? recoverySettings.nodeRecoveriesPerSecond.default);
const PROBES_PER_SECOND = 10;
const nobody = "none";
const figures = {
  back: `all ${AGENTS} back after their certificates expired`,
  peak: `new identities in a second, at the peak (${PACE}=${perSecond})`,
  p99: "a task meanwhile, on a node that lost nothing, p99",
  api: "processor time of the api for each",
  database: "processor time of PostgreSQL for each",
  load: "processor of PostgreSQL while they return",
  transactions: "transactions in a second while they return",
};
const common = { better: "lower", peer: nobody } as const;

export const recovery: Bench = {
  name: "recovery",
  summary: `${AGENTS} simulated agents whose certificates expired during an outage come back by themselves`,
  figures: [
    { ...common, name: figures.back, unit: "s" },
    // An allowance that was saved for a second may be used at the end of one, and the next second's after it.
    { ...common, name: figures.peak, unit: "1/s", target: { of: "ours", value: 2 * perSecond } },
    { ...common, name: figures.p99, unit: "ms", target: { of: "ours", value: 250 } },
    { ...common, name: figures.api, unit: "ms" },
    { ...common, name: figures.database, unit: "ms" },
    { ...common, name: figures.load, unit: "%" },
    { ...common, name: figures.transactions, unit: "1/s" },
  ],
  passes: 1,
  prepare: async (lab) => {
    // A fleet loses its certificates once in a run: every pass tells the same.
    const measured = measure(lab);
    // Whoever asks hears of it; after Ctrl-C nobody does.
    measured.catch(() => undefined);
    return {
      ours: () => measured,
      theirs: async () => ({}),
      absent: { [nobody]: "nobody else runs beside it" },
    };
  },
};

async function measure(lab: Lab): Promise<Measured> {
  const clock = openWorldClock(lab.directory(), { cached: true });
  const installation = await startInstallation(lab, { clock, settings: { [PACE]: String(perSecond) } });
  await installation.grow(AGENTS);
  await tokensAreShown(installation, AGENTS, 0);
  say(`${AGENTS} nodes have a recovery token`);
  // Their certificates get older, and their tokens are replaced.
  clock.set("+6h");
  await tokensAreShown(installation, AGENTS, 5);
  say("six hours later they have another one");
  const unaffected = await installation.addWitnesses(UNAFFECTED);
  const database = processorSecondsOfAll(installation.databasePid);
  const transactions = await transactionsOf(installation);
  const started = performance.now();
  await installation.replaceApi(() => clock.set("+25h"));
  const back = await untilBack(installation, { unaffected, started });
  const databaseSeconds = processorSecondsOfAll(installation.databasePid) - database;
  const committed = (await transactionsOf(installation)) - transactions;
  const peak = await peakOf(installation);
  say(`all back: ${JSON.stringify({ ...back, peak })}`);
  const each = (seconds: number) => (seconds * 1000) / AGENTS;
  return {
    [figures.back]: back.seconds,
    [figures.peak]: peak,
    [figures.p99]: back.p99,
    [figures.api]: each(processorSeconds(installation.apiPid())),
    [figures.database]: each(databaseSeconds),
    [figures.load]: (databaseSeconds / back.seconds) * 100,
    [figures.transactions]: committed / back.seconds,
  };
}

/** Issued so many hours after the first ones. */
async function tokensAreShown({ system }: Installation, agents: number, hours: number): Promise<void> {
  for (;;) {
    const [row] = await system<{ shown: number }[]>`
      SELECT count(DISTINCT node_id)::integer AS shown FROM recovery_tokens
      WHERE held_at IS NOT NULL
        AND issued_at >= (SELECT min(issued_at) FROM recovery_tokens) + ${`${hours} hours`}::interval`;
    if ((row?.shown ?? 0) >= agents) return;
    await pause(2_000);
  }
}

async function untilBack(
  installation: Installation,
  { unaffected, started }: { unaffected: Witnesses; started: number },
): Promise<{ seconds: number; p99: number; failed: number }> {
  const elapsed = () => (performance.now() - started) / 1000;
  const latencies: number[] = [];
  const probes = new Set<Promise<void>>();
  let failed = 0;
  const probe = async () => {
    const nodeIds = await unaffected.connectedIds(1);
    if (nodeIds.length === 0) return;
    const outcome = await installation.run({ nodeIds, atOnce: 1 });
    latencies.push(...outcome.each);
    failed += outcome.failed;
  };
  // Those that lost nothing return first; a task for one that is not back yet waits for it.
  while ((await unaffected.nodes()).connected < UNAFFECTED) await pause(250);
  say(`those that lost nothing are back after ${elapsed().toFixed(1)} s`);
  for (let turn = 0; (await installation.nodes()).connected < AGENTS; turn += 1) {
    if (elapsed() > LONGEST_SECONDS)
      throw new Error(`not all nodes came back: ${JSON.stringify(await installation.nodes())}`);
    if (turn % 20 === 0) say(`${elapsed().toFixed(0)} s: ${JSON.stringify(await installation.nodes())}`);
    for (let count = 0; count < PROBES_PER_SECOND / 2; count += 1) {
      const one = probe().finally(() => probes.delete(one));
      probes.add(one);
      // Whoever waits for all of them hears of a failure.
      one.catch(() => undefined);
      await pause(1000 / PROBES_PER_SECOND);
    }
  }
  const seconds = elapsed();
  await Promise.all(probes);
  latencies.sort((a, b) => a - b);
  return { seconds, p99: latencies[Math.floor(latencies.length * 0.99)] ?? 0, failed };
}

async function peakOf({ system }: Installation): Promise<number> {
  const [row] = await system<{ peak: number }[]>`
    SELECT coalesce(max(issued), 0)::integer AS peak FROM (
      SELECT count(*) AS issued FROM node_certificates WHERE issued_for = 'recovery'
      GROUP BY date_trunc('second', issued_at)) AS seconds`;
  return row?.peak ?? 0;
}

async function transactionsOf({ system }: Installation): Promise<number> {
  const [row] = await system<{ committed: number }[]>`
    SELECT xact_commit::integer AS committed FROM pg_stat_database WHERE datname = current_database()`;
  return row?.committed ?? 0;
}

function say(text: string): void {
  process.stderr.write(`${text}\n`);
}
