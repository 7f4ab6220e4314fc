// What is measured of a fleet: the api's memory and processor time at rest, a task for everybody, and how it comes
// back after the api was killed.

import { setTimeout as pause } from "node:timers/promises";
import { processorSeconds, residentKb } from "../processes.ts";
import { median } from "../report.ts";
import type { Installation } from "./installation.ts";

/** One heartbeat of each node. */
const REST_SECONDS = 60;
const SETTLE_SECONDS = 20;
const SINGLE = 300;
/** While nodes come back: asked of one after the other, so many a second. */
const PROBES_PER_SECOND = 20;
/** Counting them is work for the process that plays the nodes. */
const COUNTS_PER_SECOND = 4;
const LONGEST_RETURN_SECONDS = 120;
const WITNESSES = 50;

export type Rest = { residentKb: number; processor: number };

/** Percent of one processor. */
export async function atRest(installation: Installation): Promise<Rest> {
  await pause(SETTLE_SECONDS * 1000);
  const pid = installation.apiPid();
  const before = processorSeconds(pid);
  await pause(REST_SECONDS * 1000);
  const processor = ((processorSeconds(pid) - before) / REST_SECONDS) * 100;
  return { residentKb: residentKb(pid), processor };
}

/** Seconds until each node has had one task and its result was accepted. */
export async function taskForEach(installation: Installation, agents: number): Promise<number> {
  const nodeIds = await installation.connectedIds(agents);
  if (nodeIds.length < agents) throw new Error(`only ${nodeIds.length} of ${agents} nodes are connected`);
  const { all, failed } = await installation.run({ nodeIds, atOnce: agents });
  if (failed > 0) throw new Error(`${failed} of ${agents} tasks did not end well`);
  return all / 1000;
}

/** Milliseconds from enqueue to result on one node, one task after the other. */
export async function oneNode(installation: Installation): Promise<number> {
  const [nodeId = ""] = await installation.connectedIds(1);
  const { each, failed } = await installation.run({ nodeIds: Array(SINGLE).fill(nodeId), atOnce: 1 });
  if (failed > 0) throw new Error(`${failed} of ${SINGLE} tasks did not end well`);
  return median(each);
}

export type Return = {
  /** From the kill until every node is connected again. */
  seconds: number;
  /** Tasks of witnesses that were back already, meanwhile; milliseconds. */
  p99: number;
  /** Of these, how many did not end well. */
  failed: number;
};

export async function afterKill(installation: Installation, agents: number): Promise<Return> {
  const witnesses = await installation.addWitnesses(WITNESSES);
  const started = performance.now();
  const elapsed = () => (performance.now() - started) / 1000;
  await installation.replaceApi();
  // Until they have noticed that their connection is gone, they take themselves for connected.
  const upSince = Date.now();
  const latencies: number[] = [];
  const probes = new Set<Promise<void>>();
  let failed = 0;
  const probe = async () => {
    const nodeIds = await witnesses.connectedIds(1, upSince);
    if (nodeIds.length === 0) return;
    const outcome = await installation.run({ nodeIds, atOnce: 1 });
    latencies.push(...outcome.each);
    failed += outcome.failed;
  };
  while ((await installation.nodes()).connected < agents) {
    if (elapsed() > LONGEST_RETURN_SECONDS) throw new Error(`not all ${agents} nodes came back in time`);
    for (let count = 0; count < PROBES_PER_SECOND / COUNTS_PER_SECOND; count += 1) {
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
