// HTTP load from a process of its own, so that making requests and answering them do not share an
// event loop.

import { fileURLToPath } from "node:url";
import type { Lab } from "./lab.ts";

export type LoadResult = { requestsPerSecond: number; p50: number; p99: number };

const autocannon = fileURLToPath(import.meta.resolve("autocannon"));

export async function load(
  lab: Lab,
  options: { url: string; token: string; connections: number; seconds: number },
): Promise<LoadResult> {
  const { url, token, connections, seconds } = options;
  const program = lab.start({
    command: process.execPath,
    args: [
      autocannon,
      "--json",
      ...["--connections", String(connections), "--duration", String(seconds)],
      ...["--header", `authorization=Bearer ${token}`, url],
    ],
  });
  const result = JSON.parse(await program.output) as AutocannonResult;
  const failed = result.errors + result.timeouts + result.non2xx;
  if (failed > 0) throw new Error(`${failed} requests to ${url} failed`);
  const { p50, p99 } = result.latency;
  return { requestsPerSecond: result["2xx"] / result.duration, p50, p99 };
}

type AutocannonResult = {
  "2xx": number;
  duration: number;
  latency: { p50: number; p99: number };
  errors: number;
  timeouts: number;
  non2xx: number;
};
