// What an agent at rest costs its host: memory beside a bare Node.js process that does nothing, and
// processor time. It is the packed one, as hosts get it, connected, with its poll held. Beside it runs the agent of
// `holdfast up`, from the checkout.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathsIn } from "@holdfast/cli/up/data-directory";
import { readUpFile } from "@holdfast/cli/up/up-file";
import { type Client, createClient } from "@holdfast/contracts/client";
import { createEnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import { createTask, getTask } from "@holdfast/contracts/endpoints/tasks";
import type { Bench, Measured } from "../bench.ts";
import { firstOnline, startHoldfast } from "../holdfast.ts";
import type { Lab } from "../lab.ts";
import { processorMilliseconds, residentKb } from "../processes.ts";
import { root } from "../program.ts";

/** Longer than the time between two heartbeats, so that one of them is always within. */
const REST_SECONDS = 61;
const peer = "a bare node process with a timer";
const floor = peer;
const figures = {
  memory: "memory at rest",
  afterTask: "memory after a health probe",
  fromCheckout: "memory at rest, from the checkout",
  cpu: "processor at rest",
};

export const agent: Bench = {
  name: "agent",
  summary: "what a connected agent at rest costs its host: memory and processor",
  figures: [
    { name: figures.memory, unit: "MB", better: "lower", peer, floor, target: { of: "over_floor", value: 1.5 } },
    { name: figures.afterTask, unit: "MB", better: "lower", peer, floor },
    { name: figures.fromCheckout, unit: "MB", better: "lower", peer, floor },
    { name: figures.cpu, unit: "%", better: "lower", peer, floor, target: { of: "ours", value: 0.1 } },
  ],
  passes: 3,
  prepare: async (lab) => {
    const command = await packedAgent(lab);
    return { ours: () => measureAgent(lab, command), theirs: () => measureBare(lab) };
  },
};

/** The command `holdfast` of a fresh archive. */
async function packedAgent(lab: Lab): Promise<string> {
  const directory = lab.directory();
  await lab.start({ command: process.execPath, args: [join(root, "scripts/pack-agent.ts")], cwd: root }).output;
  const archives = join(root, "node-agent/dist");
  const archive = readdirSync(archives).find((name) => name.includes(`-linux-${process.arch}-`)) ?? "";
  await lab.start({ command: "tar", args: ["-xzf", join(archives, archive), "-C", directory] }).output;
  return join(directory, "holdfast-agent/bin/holdfast");
}

async function measureAgent(lab: Lab, command: string): Promise<Measured> {
  const dataDirectory = join(lab.directory(), "data");
  const { apiUrl, stop } = await startHoldfast(lab, { dataDirectory });
  const token = readFileSync(pathsIn(dataDirectory).operatorToken, "utf8").trim();
  const call = createClient({ baseUrl: apiUrl, token });
  await firstOnline(call);
  const ofCheckout = readUpFile(pathsIn(dataDirectory).upFile)?.children["agent"]?.pid;
  if (ofCheckout === undefined) throw new Error("no agent runs");
  const { pid, node, stop: stopPacked } = await startPacked(lab, command, call);
  const cpu = await restOf(pid);
  const memory = residentMegabytes(pid);
  const fromCheckout = residentMegabytes(ofCheckout);
  const task = await call(createTask, { params: { node_id: node }, body: { type: "diag.health_probe" } });
  const query = { wait_seconds: 20, until: "end" } as const;
  await call(getTask, { params: { task_id: task.id }, query });
  const afterTask = residentMegabytes(pid);
  await stopPacked();
  await stop();
  return {
    ...{ [figures.memory]: memory, [figures.afterTask]: afterTask },
    ...{ [figures.fromCheckout]: fromCheckout, [figures.cpu]: cpu },
  };
}

/** Joined as a second node of this machine, and online. */
async function startPacked(lab: Lab, command: string, call: Client) {
  const { token, api_url } = await call(createEnrollmentToken, { body: { node_name: "packed" } });
  const env = { HOLDFAST_AGENT_STATE_DIR: join(lab.directory(), "state"), HOLDFAST_AGENT_PORT: "0" };
  await lab.start({ command, args: ["agent", "join", "--token", token, "--api", api_url], env }).output;
  const { pid, stop } = lab.start({ command, args: ["agent", "run"], env });
  return { pid, node: await firstOnline(call, "packed"), stop };
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
  // Nothing at all would make the ratio meaningless.
  return {
    ...{ [figures.memory]: memory, [figures.afterTask]: memory, [figures.fromCheckout]: memory },
    ...{ [figures.cpu]: Math.max(cpu, 0.0001) },
  };
}

const residentMegabytes = (pid: number) => residentKb(pid) / 1024;

/** Percent of one processor, once the start has settled. */
async function restOf(pid: number): Promise<number> {
  const pause = (seconds: number) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  await pause(5);
  const before = processorMilliseconds(pid);
  await pause(REST_SECONDS);
  return (processorMilliseconds(pid) - before) / (REST_SECONDS * 10);
}
