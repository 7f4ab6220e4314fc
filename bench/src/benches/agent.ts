// What an agent at rest costs its host: memory beside a bare Node.js process that does nothing, and
// processor time. The agent runs under `holdfast up`, connected, with its poll held.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathsIn } from "@holdfast/cli/up/data-directory";
import { readUpFile } from "@holdfast/cli/up/up-file";
import { createClient } from "@holdfast/contracts/client";
import { createTask, getTask } from "@holdfast/contracts/endpoints/tasks";
import type { Bench, Measured } from "../bench.ts";
import { firstOnline, startHoldfast } from "../holdfast.ts";
import type { Lab } from "../lab.ts";
import { processorSeconds, residentKb } from "../processes.ts";

/** Longer than the time between two heartbeats, so that one of them is always within. */
const REST_SECONDS = 21;
const peer = "a bare node process with a timer";
const floor = peer;
const figures = { memory: "memory at rest", afterTask: "memory after a health probe", cpu: "processor at rest" };

export const agent: Bench = {
  name: "agent",
  summary: "what a connected agent at rest costs its host: memory and processor",
  figures: [
    { name: figures.memory, unit: "MB", better: "lower", peer, floor, target: { of: "over_floor", value: 1.5 } },
    { name: figures.afterTask, unit: "MB", better: "lower", peer, floor },
    { name: figures.cpu, unit: "%", better: "lower", peer, floor, target: { of: "ours", value: 0.1 } },
  ],
  passes: 3,
  prepare: async (lab) => ({ ours: () => measureAgent(lab), theirs: () => measureBare(lab) }),
};

async function measureAgent(lab: Lab): Promise<Measured> {
  const dataDirectory = join(lab.directory(), "data");
  const { apiUrl, stop } = await startHoldfast(lab, { dataDirectory });
  const token = readFileSync(pathsIn(dataDirectory).operatorToken, "utf8").trim();
  const call = createClient({ baseUrl: apiUrl, token });
  const node = await firstOnline(call);
  const pid = readUpFile(pathsIn(dataDirectory).upFile)?.children["agent"]?.pid;
  if (pid === undefined) throw new Error("no agent runs");
  const cpu = await restOf(pid);
  const memory = residentMegabytes(pid);
  const task = await call(createTask, { params: { node_id: node }, body: { type: "diag.health_probe" } });
  const query = { wait_seconds: 20, until: "end" } as const;
  await call(getTask, { params: { task_id: task.id }, query });
  const afterTask = residentMegabytes(pid);
  await stop();
  return { [figures.memory]: memory, [figures.afterTask]: afterTask, [figures.cpu]: cpu };
}

async function measureBare(lab: Lab): Promise<Measured> {
  const program = lab.start({
    command: process.execPath,
    args: ["-e", "setInterval(() => {}, 1e9); console.log(JSON.stringify({ pid: process.pid }))"],
  });
  const { pid } = (await program.ready) as { pid: number };
  const cpu = await restOf(pid);
  const memory = residentMegabytes(pid);
  await program.stop();
  // A clock tick is the least that can be seen; nothing at all would make the ratio meaningless.
  return { [figures.memory]: memory, [figures.afterTask]: memory, [figures.cpu]: Math.max(cpu, 0.01) };
}

const residentMegabytes = (pid: number) => residentKb(pid) / 1024;

/** Percent of one processor, once the start has settled. */
async function restOf(pid: number): Promise<number> {
  const pause = (seconds: number) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  await pause(5);
  const before = processorSeconds(pid);
  await pause(REST_SECONDS);
  return ((processorSeconds(pid) - before) / REST_SECONDS) * 100;
}
