// Measures whatever turns a job into its result: one at a time for latency, many in flight for
// throughput. Both sides of a contest run it inside their own producer, so that nothing but the
// queue itself lies between start and end.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { median } from "./report.ts";

export type RoundTrip = () => Promise<void>;

export type RoundTrips = { p50: number; p99: number; perSecond: number };

/** A producer answers GET / with a fresh measurement, in JSON. */
export async function serveRoundTrips(
  roundTrip: RoundTrip,
  amounts: { single: number; many: number; inFlight: number },
): Promise<void> {
  const server = createServer((_request, response) => {
    measure(roundTrip, amounts).then(
      (measured) => response.end(JSON.stringify(measured)),
      (error: Error) => response.writeHead(500).end(error.stack),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${port}` })}\n`);
}

export async function askForRoundTrips(url: string): Promise<RoundTrips> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(await response.text());
  return (await response.json()) as RoundTrips;
}

async function measure(
  roundTrip: RoundTrip,
  amounts: { single: number; many: number; inFlight: number },
): Promise<RoundTrips> {
  const latencies: number[] = [];
  for (let done = 0; done < amounts.single; done += 1) {
    const started = performance.now();
    await roundTrip();
    latencies.push(performance.now() - started);
  }
  latencies.sort((a, b) => a - b);
  let left = amounts.many;
  const started = performance.now();
  const lane = async () => {
    while (left > 0) {
      left -= 1;
      await roundTrip();
    }
  };
  await Promise.all(Array.from({ length: amounts.inFlight }, lane));
  const seconds = (performance.now() - started) / 1000;
  const p99 = latencies[Math.floor(latencies.length * 0.99)] ?? 0;
  return { p50: median(latencies), p99, perSecond: amounts.many / seconds };
}
