// The peer of the `workflow` bench: a chain of ten jobs, written by hand on a PostgreSQL job library, each of which adds the next. Producer
// and worker are one process beside a PostgreSQL of their own with every durability on. GET / runs a hundred chains at once.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { startEmbeddedPostgres } from "@holdfast/control-plane/database/embedded/start";
import { median } from "../report.ts";

export type JobChain = {
  library: "graphile-worker" | "pg-boss";
  /** Where it is installed. */
  installed: string;
  directory: string;
  steps: number;
  chains: number;
};

type Payload = { chain: string; step: number };
type Add = (payload: Payload) => Promise<unknown>;

const options = JSON.parse(process.env["BENCH_PEER"] ?? "") as JobChain;
const CONCURRENCY = 10;
const database = await startEmbeddedPostgres({ directory: join(options.directory, "postgres") });
const ends = new Map<string, (at: number) => void>();

const { add, stop } = await open((payload: Payload, next: Add) => {
  if (payload.step < options.steps) return next({ ...payload, step: payload.step + 1 });
  ends.get(payload.chain)?.(performance.now());
  return Promise.resolve();
});

type Opened = { add: Add; stop(): Promise<unknown> };
type Work = (payload: Payload, next: Add) => Promise<unknown>;

async function open(work: Work): Promise<Opened> {
  return options.library === "pg-boss" ? openPgBoss(work) : openGraphile(work);
}

async function openGraphile(work: Work): Promise<Opened> {
  const { run, Logger } = await import(join(options.installed, "dist/index.js"));
  const runner = await run({
    ...{
      connectionString: database.ownerUrl,
      concurrency: CONCURRENCY,
      pollInterval: 2_000,
      noHandleSignals: true,
    },
    logger: new Logger(() => () => undefined),
    taskList: {
      step: (payload: Payload, { addJob }: { addJob(name: string, payload: Payload): Promise<unknown> }) =>
        work(payload, (next) => addJob("step", next)),
    },
  });
  return { add: (payload) => runner.addJob("step", payload), stop: () => runner.stop() };
}

async function openPgBoss(work: Work): Promise<Opened> {
  const { PgBoss } = await import(join(options.installed, "dist/index.js"));
  const boss = new PgBoss({ connectionString: database.ownerUrl, useListenNotify: true });
  boss.on("error", () => undefined);
  await boss.start();
  await boss.createQueue("step", { notify: true });
  const next: Add = (payload) => boss.send("step", payload);
  const batch = {
    batchSize: CONCURRENCY,
    pollingIntervalSeconds: 0.5,
    notifyPollingIntervalSeconds: 2,
    burstWhenBatchFull: true,
  };
  await boss.work("step", batch, async (jobs: { data: Payload }[]) => {
    await Promise.all(jobs.map(({ data }) => work(data, next)));
  });
  return { add: next, stop: () => boss.stop() };
}

let pass = 0;
const server = createServer(async (_request, response) => {
  pass += 1;
  const begun = performance.now();
  const times = await Promise.all(
    Array.from({ length: options.chains }, async (_, index) => {
      const chain = `${pass}-${index}`;
      const { promise, resolve } = Promise.withResolvers<number>();
      ends.set(chain, resolve);
      const added = performance.now();
      await add({ chain, step: 1 });
      return (await promise) - added;
    }),
  );
  ends.clear();
  const perSecond = options.chains / ((performance.now() - begun) / 1000);
  response.end(JSON.stringify({ p50: median(times), perSecond }));
});
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
process.stdout.write(
  `${JSON.stringify({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, pid: process.pid })}\n`,
);

process.once("SIGTERM", async () => {
  await stop();
  await database.stop({ hurry: true });
  process.exit(0);
});
