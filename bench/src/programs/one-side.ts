// Holdfast in any bench, of the checkout whose bench/src is given: prepares it, then measures it on request.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Bench } from "../bench.ts";
import type { openLab } from "../lab.ts";

export type OneSide = { bench: string; directory: string };

const options = JSON.parse(process.env["BENCH_OURS"] ?? "") as OneSide;
const { allBenches } = (await import(join(options.directory, "benches/all.ts"))) as { allBenches: Bench[] };
const labs = (await import(join(options.directory, "lab.ts"))) as { openLab: typeof openLab };
const bench = allBenches.find(({ name }) => name === options.bench);
if (!bench) throw new Error(`there is no bench ${options.bench} in ${options.directory}`);

const lab = labs.openLab();
process.once("SIGTERM", () => void lab.close().finally(() => process.exit(0)));
const contest = await bench.prepare(lab).catch(async (error: unknown) => {
  await lab.close();
  throw error;
});
const server = createServer((_request, response) => {
  contest.ours().then(
    (measured) => response.end(JSON.stringify(measured)),
    (error: Error) => response.writeHead(500).end(error.stack),
  );
});
// A pass takes as long as it takes.
server.requestTimeout = 0;
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
const { port } = server.address() as AddressInfo;
process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${port}` })}\n`);
