// Holdfast in the `dispatch` bench: an api process with a producer inside, as the control plane's own
// nouns produce, over PostgreSQL with every durability on; and one agent in a process of its own, which
// joined by the product's own path and speaks mutual TLS.

import { createHash, randomBytes } from "node:crypto";
import { join } from "node:path";
import { createClient } from "@holdfast/contracts/client";
import { createEnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import { startApi } from "@holdfast/control-plane/api/main";
import { apiSettings } from "@holdfast/control-plane/api/settings";
import { systemActor } from "@holdfast/control-plane/audit/record";
import { startEmbeddedPostgres } from "@holdfast/control-plane/database/embedded/start";
import { setUpDatabase } from "@holdfast/control-plane/database/logins";
import { loginEnvironment } from "@holdfast/control-plane/database/settings";
import { readSettings } from "@holdfast/kit/settings";
import { createLog } from "@holdfast/service/log";
import { firstOnline } from "../holdfast.ts";
import { launch, root } from "../program.ts";
import { serveRoundTrips } from "../round-trips.ts";

export type TaskProducer = { directory: string; single: number; many: number; inFlight: number };

const options = JSON.parse(process.env["BENCH_OURS"] ?? "") as TaskProducer;
const holdfast = join(root, "cli/bin/holdfast.mjs");
const operatorToken = `hfo_${randomBytes(32).toString("base64url")}`;

const database = await startEmbeddedPostgres({ directory: join(options.directory, "postgres") });
const { logins } = await setUpDatabase({ ownerUrl: database.ownerUrl });
const settings = readSettings(apiSettings, {
  HOLDFAST_API_PORT: "0",
  HOLDFAST_NODE_API_PORT: "0",
  ...loginEnvironment(logins),
  HOLDFAST_MIGRATE_ON_START: "no",
  HOLDFAST_KEK_BASE64: randomBytes(32).toString("base64"),
  HOLDFAST_OPERATOR_TOKEN_SHA256: createHash("sha256").update(operatorToken).digest("hex"),
});
const log = createLog({ process: "api", level: "info", destination: { write: () => undefined } });
const api = await startApi(settings, log);
const call = createClient({ baseUrl: `http://127.0.0.1:${api.ports["public"]}`, token: operatorToken });
const agent = await joinAgent();
const nodeId = await firstOnline(call);
const noop = { nodeId, type: "node.noop", params: {}, by: systemActor("bench"), correlationId: "bench" };

process.once("SIGTERM", async () => {
  await agent.stop();
  await api.stop();
  await database.stop({ hurry: true });
  process.exit(0);
});

await serveRoundTrips(async () => {
  const ended = await api.tasks.run(noop, { waitMs: 10_000 });
  if (ended?.status !== "completed") throw new Error(`a task ended as ${ended?.status ?? "nothing"}`);
}, options);

async function joinAgent() {
  // The only organization there is.
  const { token, api_url } = await call(createEnrollmentToken, { body: {} });
  const env = { HOLDFAST_AGENT_STATE_DIR: join(options.directory, "agent"), HOLDFAST_AGENT_PORT: "0" };
  const run = (...args: string[]) =>
    launch({
      command: process.execPath,
      args: [holdfast, "agent", ...args],
      env: { ...env, HOLDFAST_AGENT_LOG_LEVEL: "warn" },
    });
  await run("join", "--token", token, "--api", api_url).output;
  return run("run");
}
