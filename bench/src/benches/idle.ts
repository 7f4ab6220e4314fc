// What an agent that does nothing costs a gateway: resident memory for each of 5,000 that are connected and ping, beside a server
// of `ws` that keeps as many sockets; as it is, and after a collection of garbage.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { pathsIn } from "@holdfast/cli/up/data-directory";
import { readUpFile } from "@holdfast/cli/up/up-file";
import { createClient } from "@holdfast/contracts/client";
import { getMe } from "@holdfast/contracts/endpoints/me";
import type { Bench, Measured } from "../bench.ts";
import { collectedKb, withInspector } from "../collected.ts";
import { startHoldfast } from "../holdfast.ts";
import type { Lab } from "../lab.ts";
import { residentKb } from "../processes.ts";
import type { IdleSockets } from "../programs/idle-sockets.ts";

const AGENTS = 5_000;
/** Two pings of each. The least of it counts: what is garbage has been collected then. */
const REST_SECONDS = 30;
const peer = "a bare ws server";
const memory = `gateway, memory for each of ${AGENTS} idle agents`;
const collected = "the same, after a collection of garbage";

export const idle: Bench = {
  name: "idle",
  summary: "what an idle agent that runs steps costs a gateway: memory",
  figures: [
    { name: memory, unit: "KB", better: "lower", peer, target: { of: "ratio", value: 1.25 } },
    // Says what is kept. It contains the code that V8 has compiled meanwhile, of which a bare server has little.
    { name: collected, unit: "KB", better: "lower", peer },
  ],
  passes: 1,
  prepare: async (lab) => ({ ours: () => measureGateway(lab), theirs: () => measureBare(lab) }),
};

async function measureGateway(lab: Lab): Promise<Measured> {
  const dataDirectory = join(lab.directory(), "data");
  const settings = { HOLDFAST_UP_AGENT: "no", ...withInspector };
  const { apiUrl, stop } = await startHoldfast(lab, { dataDirectory, settings });
  const operatorToken = readFileSync(pathsIn(dataDirectory).operatorToken, "utf8").trim();
  const me = await createClient({ baseUrl: apiUrl, token: operatorToken })(getMe, {});
  const pairing = { apiUrl, operatorToken, orgId: me.organizations[0]?.id ?? "" };
  const pid = readUpFile(pathsIn(dataDirectory).upFile)?.children["gateway"]?.pid;
  if (pid === undefined) throw new Error("no gateway runs");
  const printed = () => readFileSync(join(pathsIn(dataDirectory).logs, "gateway.log"), "utf8");
  const each = await memoryOfEach(lab, { pid, printed }, { count: AGENTS, pairing });
  await stop();
  return each;
}

async function measureBare(lab: Lab): Promise<Measured> {
  const server = start(lab, "bare-sockets");
  const { url, pid } = (await server.ready) as { url: string; pid: number };
  const each = await memoryOfEach(lab, { pid, printed: server.said }, { count: AGENTS, url });
  await server.stop();
  return each;
}

type Server = { pid: number; printed: () => string };

async function memoryOfEach(lab: Lab, { pid, printed }: Server, sockets: IdleSockets): Promise<Measured> {
  const before = { least: await leastOf(pid), collected: await collectedKb(pid, printed) };
  const clients = start(lab, "idle-sockets", sockets);
  await clients.ready;
  const after = { least: await leastOf(pid), collected: await collectedKb(pid, printed) };
  await clients.stop();
  return {
    [memory]: (after.least - before.least) / sockets.count,
    [collected]: (after.collected - before.collected) / sockets.count,
  };
}

async function leastOf(pid: number): Promise<number> {
  let least = residentKb(pid);
  for (let second = 0; second < REST_SECONDS; second += 1) {
    await wait(1_000);
    least = Math.min(least, residentKb(pid));
  }
  return least;
}

function start(lab: Lab, program: string, options: object = {}) {
  return lab.start({
    command: process.execPath,
    args: [fileURLToPath(new URL(`../programs/${program}.ts`, import.meta.url))],
    env: { BENCH_OURS: JSON.stringify(options), ...withInspector },
  });
}
