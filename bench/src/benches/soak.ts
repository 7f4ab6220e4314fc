// A fleet under a steady stream of tasks for as long as one likes: does the api's memory grow, and is every task
// carried out once?

import type { Bench, BenchOptions, Measured } from "../bench.ts";
import { startInstallation } from "../fleet/installation.ts";
import { soakInstallation } from "../fleet/soak.ts";
import type { Lab } from "../lab.ts";

const AGENTS = 10_000;
const MINUTES = 60;
const nobody = "none";
const figures = {
  sent: "tasks sent",
  received: "results received",
  lost: "lost tasks",
  again: "tasks delivered again",
  late: "results of tasks that had ended",
  memory: "memory of the api at the end",
  growth: "growth of that memory in the second half",
  live: "of it objects in use, after a collection of garbage",
  kept: "growth of these for each task, after the first third",
};
const common = { peer: nobody, better: "lower" } as const;
const none = { target: { of: "ours", value: 0 } } as const;

export const soak: Bench = {
  name: "soak",
  summary: `${AGENTS} simulated agents with a steady stream of tasks: memory, lost tasks; --agents N --minutes N`,
  takes: ["agents", "minutes"],
  figures: [
    { ...common, name: figures.sent, unit: "tasks", better: "higher" },
    { ...common, name: figures.received, unit: "results", better: "higher" },
    { ...common, name: figures.lost, unit: "tasks", ...none },
    { ...common, name: figures.again, unit: "tasks" },
    { ...common, name: figures.late, unit: "results" },
    { ...common, name: figures.memory, unit: "MB" },
    { ...common, name: figures.growth, unit: "MB/h" },
    { ...common, name: figures.live, unit: "MB" },
    { ...common, name: figures.kept, unit: "bytes", target: { of: "ours", value: 20 } },
  ],
  passes: 1,
  prepare: async (lab, options) => {
    // It soaks once in a run: every pass tells the same.
    const measured = measure(lab, options);
    // Whoever asks hears of it; after Ctrl-C nobody does.
    measured.catch(() => undefined);
    return {
      ours: () => measured,
      theirs: async () => ({}),
      absent: { [nobody]: "nobody else runs beside it" },
    };
  },
};

async function measure(lab: Lab, { agents = AGENTS, minutes = MINUTES }: BenchOptions = {}): Promise<Measured> {
  const installation = await startInstallation(lab);
  await installation.grow(agents);
  const soaked = await soakInstallation(installation, {
    agents,
    minutes,
    onMinute: (line) => void process.stderr.write(`${line}\n`),
  });
  const { sent, received, stored } = soaked;
  return {
    [figures.sent]: sent,
    [figures.received]: received,
    [figures.lost]: sent - stored.completed,
    [figures.again]: stored.again,
    [figures.late]: stored.late,
    [figures.memory]: soaked.memoryMb,
    [figures.growth]: soaked.growthMbPerHour,
    [figures.live]: soaked.liveMb,
    [figures.kept]: soaked.liveBytesPerTask,
  };
}
