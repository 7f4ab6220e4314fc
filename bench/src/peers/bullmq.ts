// The peer of the `dispatch` bench: BullMQ with its worker in a process of its own, which does
// nothing, and a producer that waits for each job's end.

import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { Queue, QueueEvents, Worker } from "bullmq";
import { serveRoundTrips } from "../round-trips.ts";

export type BullmqPeer = { redisPort: number; single: number; many: number; inFlight: number };

const options = JSON.parse(process.env["BENCH_PEER"] ?? "") as BullmqPeer;
const connection = { host: "127.0.0.1", port: options.redisPort };
const name = "bench";

if (process.argv[2] === "worker") {
  const worker = new Worker(name, async () => 0, { connection, concurrency: options.inFlight });
  await worker.waitUntilReady();
  process.once("disconnect", () => process.exit());
  process.send?.("ready");
} else {
  const worker = fork(fileURLToPath(import.meta.url), ["worker"]);
  await new Promise((resolve) => worker.once("message", resolve));
  const queue = new Queue(name, { connection });
  const events = new QueueEvents(name, { connection });
  // Each waiting job listens on both.
  for (const emitter of [queue, events]) emitter.setMaxListeners(0);
  await events.waitUntilReady();
  await serveRoundTrips(async () => {
    const job = await queue.add("noop", {}, { removeOnComplete: 1000 });
    await job.waitUntilFinished(events);
  }, options);
}
