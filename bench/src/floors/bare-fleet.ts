// The floor below a fleet: what connections of mutual TLS cost a server that does nothing else. Measured with a thousand of
// them; all but the memory grows with their number.

import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Lab } from "../lab.ts";
import { processorSeconds, residentKb } from "../processes.ts";
import { median } from "../report.ts";
import type { BareAgents } from "./bare-agents.ts";
import type { BareServer, Pushed } from "./bare-server.ts";
import { bareCredentials } from "./credentials.ts";

export type BareFleet = {
  /** KB of resident memory for each connection. */
  memory: number;
  /** Percent of a processor for each stream at rest. */
  processor: number;
  /** Seconds for each connection to be made; and how many for each second of the server's processor time. */
  dial: number;
  dialsPerProcessorSecond: number;
  /** Seconds for each stream, when all get a message and answer it. */
  each: number;
  /** Milliseconds from a push to its answer, of one alone. */
  roundTrip: { p50: number; p99: number };
};

const CONNECTIONS = 1_000;
/** Before the first measurement: code is compiled, pools are there. */
const WARM = 50;
/** One heartbeat of each. */
const REST_SECONDS = 60;

export async function measureBareFleet(lab: Lab): Promise<BareFleet> {
  const { server, agents, stop } = await startBare(lab);
  const settled = async () => {
    await pause(1_000);
    return residentKb(server.pid);
  };
  await agents("/held", WARM);
  const before = { memory: await settled(), processor: processorSeconds(server.pid) };
  const { seconds } = await agents("/held", CONNECTIONS);
  const dialled = processorSeconds(server.pid) - before.processor;
  const memory = ((await settled()) - before.memory) / (CONNECTIONS - WARM);
  await agents("/close", 0);

  await agents("/streams", CONNECTIONS);
  await server.push(1, "all");
  const atRest = processorSeconds(server.pid);
  await pause(REST_SECONDS * 1000);
  const processor = ((processorSeconds(server.pid) - atRest) / REST_SECONDS / CONNECTIONS) * 100;
  const each = median(await server.push(5, "all")) / 1000 / CONNECTIONS;
  const one = (await server.push(300, "one")).toSorted((a, b) => a - b);
  await stop();
  return {
    memory,
    processor,
    dial: seconds / (CONNECTIONS - WARM),
    dialsPerProcessorSecond: (CONNECTIONS - WARM) / dialled,
    each,
    roundTrip: { p50: median(one), p99: one[Math.floor(one.length * 0.99)] ?? 0 },
  };
}

/** One measured before and one after the fleet: whatever slows the machine down for a while meets both. */
export function meanOf(a: BareFleet, b: BareFleet): BareFleet {
  const mean = (of: (one: BareFleet) => number) => (of(a) + of(b)) / 2;
  return {
    memory: mean((one) => one.memory),
    processor: mean((one) => one.processor),
    dial: mean((one) => one.dial),
    dialsPerProcessorSecond: mean((one) => one.dialsPerProcessorSecond),
    each: mean((one) => one.each),
    roundTrip: { p50: mean((one) => one.roundTrip.p50), p99: mean((one) => one.roundTrip.p99) },
  };
}

async function startBare(lab: Lab) {
  const credentials = await bareCredentials();
  const start = async (name: string, options: unknown) => {
    const program = lab.start({
      command: process.execPath,
      args: [fileURLToPath(new URL(`./${name}.ts`, import.meta.url))],
      env: { BENCH_PEER: JSON.stringify(options) },
    });
    return { program, said: await program.ready };
  };
  const server = await start("bare-server", credentials.server);
  const { port, control } = server.said as BareServer;
  const options: BareAgents = { port, credentials: credentials.agent };
  const agents = await start("bare-agents", options);
  const agentsControl = (agents.said as Pick<BareServer, "control">).control;
  return {
    server: {
      pid: server.program.pid,
      push: async (times: number, to: "all" | "one") =>
        ((await ask(`${control}/?times=${times}&to=${to}`)) as Pushed).milliseconds,
    },
    agents: async (path: string, count: number) =>
      (await ask(`${agentsControl}${path}?count=${count}`)) as { seconds: number },
    stop: async () => {
      await agents.program.stop();
      await server.program.stop();
    },
  };
}

async function ask(url: string): Promise<unknown> {
  return (await fetch(url)).json();
}
