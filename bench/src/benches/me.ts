// What an authenticated request costs beyond its query: GET /v1/me with an API token, over a whole
// Holdfast with everything on, beside a bare Fastify route that runs the same query on the same
// database. Host and origin checks, correlation ids, security headers, log and metrics are the price.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { pathsIn } from "@holdfast/cli/up/data-directory";
import { createClient } from "@holdfast/contracts/client";
import { createToken } from "@holdfast/contracts/endpoints/tokens";
import { apiSettings } from "@holdfast/control-plane/api/settings";
import { databaseName, readCredentials, roles } from "@holdfast/control-plane/database/embedded/credentials";
import { socketUrl } from "@holdfast/control-plane/database/embedded/socket-url";
import { deriveLogins } from "@holdfast/control-plane/database/logins";
import { hashSecret } from "@holdfast/control-plane/mechanisms/secrets";
import { readSettings } from "@holdfast/kit/settings";
import type { Bench, Measured } from "../bench.ts";
import { startHoldfast } from "../holdfast.ts";
import type { Lab } from "../lab.ts";
import { load } from "../load.ts";
import type { TokenLookupPeer } from "../peers/token-lookup.ts";

const connections = 32;
const seconds = 2;
const peer = "a bare Fastify route running the same query over an equal pool, without log, metrics and checks";
const figures = { rate: "requests", p50: "latency p50", p99: "latency p99" };

export const me: Bench = {
  name: "me",
  summary: `authenticated GET /v1/me over ${connections} connections: requests per second and latency`,
  figures: [
    { name: figures.rate, unit: "1/s", better: "higher", peer, target: { of: "ratio", value: 0.6 } },
    { name: figures.p50, unit: "ms", better: "lower", peer },
    { name: figures.p99, unit: "ms", better: "lower", peer },
  ],
  passes: 11,
  prepare: async (lab) => {
    const dataDirectory = join(lab.directory(), "data");
    const { apiUrl } = await startHoldfast(lab, { dataDirectory });
    const operator = createClient({ baseUrl: apiUrl, token: operatorToken(dataDirectory) });
    const { token } = await operator(createToken, { body: { name: "bench" } });
    const peerUrl = await startPeer(lab, dataDirectory, token);
    const urls = { ours: `${apiUrl}/v1/me`, theirs: `${peerUrl}/v1/me` };
    await expectEqualAnswers(urls, token);
    const measure = async (url: string): Promise<Measured> => {
      const result = await load(lab, { url, token, connections, seconds });
      return { [figures.rate]: result.requestsPerSecond, [figures.p50]: result.p50, [figures.p99]: result.p99 };
    };
    return { ours: () => measure(urls.ours), theirs: () => measure(urls.theirs) };
  },
};

function operatorToken(dataDirectory: string): string {
  return readFileSync(pathsIn(dataDirectory).operatorToken, "utf8").trim();
}

async function startPeer(lab: Lab, dataDirectory: string, token: string): Promise<string> {
  const directory = pathsIn(dataDirectory).postgres;
  const credentials = readCredentials(directory);
  if (!credentials) throw new Error(`${directory} holds no credentials`);
  const ownerUrl = socketUrl({
    user: roles.owner,
    password: credentials.owner,
    directory: join(directory, "run"),
    database: databaseName,
  });
  const options: TokenLookupPeer = {
    databaseUrl: deriveLogins(ownerUrl).systemUrl,
    poolSize: readSettings(apiSettings, {}).databasePoolSize,
    secretHash: hashSecret(token).toString("hex"),
  };
  const program = lab.start({
    command: process.execPath,
    args: [fileURLToPath(new URL("../peers/token-lookup.ts", import.meta.url))],
    env: { BENCH_PEER: JSON.stringify(options) },
  });
  return ((await program.ready) as { url: string }).url;
}

/** A comparison of unequal work would say nothing. */
async function expectEqualAnswers(urls: { ours: string; theirs: string }, token: string): Promise<void> {
  const answerOf = async (url: string) =>
    (await fetch(url, { headers: { authorization: `Bearer ${token}` } })).text();
  const [ours, theirs] = [await answerOf(urls.ours), await answerOf(urls.theirs)];
  if (ours !== theirs) throw new Error(`the answers differ:\n${ours}\n${theirs}`);
}
