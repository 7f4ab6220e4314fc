// Holdfast in the `fleet` bench: one api process with a producer inside, which takes requests over a small HTTP
// port of its own, and tells how much of its memory is in use. It may be killed at any moment and started again on the
// same ports.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { startApi } from "@holdfast/control-plane/api/main";
import { apiSettings } from "@holdfast/control-plane/api/settings";
import { systemActor } from "@holdfast/control-plane/audit/record";
import { readSettings } from "@holdfast/kit/settings";
import { createLog } from "@holdfast/service/log";

export type FleetApi = { settings: Record<string, string> };
/** Runs one task that does nothing on each of these nodes, so many at a time; answers how long each took. */
export type FleetOrder = { nodeIds: string[]; atOnce: number };
/** Milliseconds of each task that ended well, from enqueue to result; of all together; and how many did not. */
export type FleetOutcome = { each: number[]; all: number; failed: number };

/** Bytes of objects that are in use, after a collection of garbage. */
export type FleetLive = { live: number };

/** Beyond any target: how long it took is the figure, also when it is a bad one. */
const LONGEST_MS = 180_000;

const options = JSON.parse(process.env["BENCH_OURS"] ?? "") as FleetApi;
const log = createLog({ process: "api", level: "info", destination: { write: () => undefined } });
const api = await startApi(readSettings(apiSettings, options.settings), log);

async function run({ nodeIds, atOnce }: FleetOrder): Promise<FleetOutcome> {
  const each: number[] = [];
  let failed = 0;
  let next = 0;
  const lane = async () => {
    while (next < nodeIds.length) {
      const nodeId = nodeIds[next++] ?? "";
      const started = performance.now();
      const task = { nodeId, type: "node.noop", params: {}, by: systemActor("bench"), correlationId: "bench" };
      const ended = await api.tasks.run(task, { waitMs: LONGEST_MS }).catch(() => undefined);
      if (ended?.status === "completed") each.push(performance.now() - started);
      else failed += 1;
    }
  };
  const started = performance.now();
  await Promise.all(Array.from({ length: Math.min(atOnce, nodeIds.length) }, lane));
  return { each, all: performance.now() - started, failed };
}

// Asked for here and not on the command line, where whoever asks for another flag would have to repeat it.
setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

function live(): FleetLive {
  collectGarbage();
  return { live: process.memoryUsage().heapUsed };
}

const server = createServer(async (request, response) => {
  let text = "";
  for await (const part of request.setEncoding("utf8")) text += part;
  try {
    const answer = request.url === "/live" ? live() : await run(JSON.parse(text) as FleetOrder);
    response.end(JSON.stringify(answer));
  } catch (error) {
    response.writeHead(500).end((error as Error).stack);
  }
});
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
process.once("SIGTERM", async () => {
  await api.stop();
  process.exit(0);
});
const { port } = server.address() as AddressInfo;
process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${port}` })}\n`);
