// What a sandbox costs: `true` through our drivers of bubblewrap and docker, with all limits, beside both started by hand with the
// same options. Afterwards, what is left on the host is counted.

import type { Bench, Measured } from "../bench.ts";
import { bubblewrapContestants } from "../sandbox/bubblewrap.ts";
import type { Contestants } from "../sandbox/contestants.ts";
import { dockerContestants } from "../sandbox/docker.ts";

const PARALLEL = 20;
const MEBIBYTE = 1024 * 1024;
const limits = { memoryBytes: 256 * MEBIBYTE, cpus: 1, pids: 256, diskBytes: 128 * MEBIBYTE };

/** With 17 passes, the warm-up included, at least 500 runs of each. Few in a pass: the load of a machine changes in seconds. */
const backends = [
  { name: "bubblewrap", single: 40, peer: "bubblewrap by hand, same options and cgroup", ratio: 1.3 },
  { name: "docker", single: 10, peer: "docker run by hand, same options", ratio: 1.1 },
] as const;
type Backend = (typeof backends)[number];

const contestants = { bubblewrap: bubblewrapContestants, docker: dockerContestants };
const singleOf = ({ name }: Backend) => `true in ${name}, one at a time, p50`;
const parallelOf = ({ name }: Backend) => `true in ${name}, ${PARALLEL} in parallel, all of them`;

export const sandbox: Bench = {
  name: "sandbox",
  summary:
    "a script that does nothing in a sandbox, beside bubblewrap and docker by hand; nothing is left afterwards",
  figures: backends.flatMap((backend) => {
    const common = { unit: "ms", better: "lower" as const, peer: backend.peer };
    return [
      { name: singleOf(backend), ...common, target: { of: "ratio" as const, value: backend.ratio } },
      { name: parallelOf(backend), ...common },
    ];
  }),
  passes: 16,
  prepare: async (lab) => {
    const sides: { backend: Backend; runs: number; both: Contestants }[] = [];
    for (const backend of backends) {
      sides.push({ backend, runs: 0, both: await contestants[backend.name](lab, limits) });
    }
    return {
      async ours() {
        const measured: Measured = {};
        for (const side of sides) {
          side.runs += side.backend.single + PARALLEL;
          Object.assign(measured, await measure(side.backend, side.both.ours));
        }
        return measured;
      },
      async theirs() {
        const measured: Measured = {};
        for (const { backend, both } of sides) Object.assign(measured, await measure(backend, both.theirs));
        return measured;
      },
      notes: () =>
        sides.map(({ backend, runs, both }) => `${backend.name}, after ${runs} runs of ours: ${both.left()}`),
    };
  },
};

async function measure(backend: Backend, once: () => Promise<void>): Promise<Measured> {
  const times: number[] = [];
  for (let run = 0; run < backend.single; run += 1) times.push(await timed(once));
  const together = await timed(() => Promise.all(Array.from({ length: PARALLEL }, once)));
  times.sort((a, b) => a - b);
  return { [singleOf(backend)]: times[backend.single / 2] ?? Number.NaN, [parallelOf(backend)]: together };
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}
