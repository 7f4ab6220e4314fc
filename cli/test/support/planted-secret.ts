// Plants secrets in a whole installation and looks for them everywhere else: in the database and its files, logs, results, the process
// list, environments, working directories, core files, metrics and the audit. A step gets them and does its best to spread them.

import { randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { listAudit } from "@holdfast/contracts/endpoints/audit";
import {
  cancelExecution,
  getExecution,
  listExecutions,
  readExecutionOutput,
} from "@holdfast/contracts/endpoints/executions";
import { getSecret, listSecrets, setSecret } from "@holdfast/contracts/endpoints/secrets";
import { type DispatchBody, dispatchPaths, requestIdOf } from "@holdfast/contracts/execution/dispatch";
import { uuidv7 } from "@holdfast/kit/uuid";
import { scratchDirectory } from "../../../testkit/agent/scratch.ts";
import { ask } from "../../../testkit/gateway/agents.ts";
import { atEnd } from "../../../testkit/lifetime/at-end.ts";
import { until } from "../../../testkit/processes/holdfast.ts";
import { type ExecutionSite, openDatabaseOf, openExecutionSite, shellStep } from "./executions.ts";

/** Where something was looked for. */
export const sinks = [
  ...["database", "database files", "logs", "results", "arguments", "environments"],
  ...["later runs", "files", "core files", "metrics", "audit"],
] as const;
export type Sink = (typeof sinks)[number];
/** In which of them a planted secret was found. */
export type Found = Partial<Record<Sink, true>>;

const verbose = {
  ...{ HOLDFAST_API_LOG_LEVEL: "debug", HOLDFAST_GATEWAY_LOG_LEVEL: "debug", HOLDFAST_WORKER_LOG_LEVEL: "debug" },
};

const READ = 'secret=$(cat "$HOLDFAST_EXECUTION_SECRET_FILE")';
/** Prints the secret in every form that a careless script prints it in, in pieces too, and leaves copies wherever it can write. */
const SPREAD = [
  READ,
  'printf "%s\\n" "$secret"; printf "%s\\n" "$secret" >&2; printf %s "$secret" | base64; printf %s "$secret" | od -An -tx1 | tr -d " \\n"',
  'printf %s "$secret" | perl -pe "s/(\\W)/sprintf(q(%%%02X), ord \\$1)/ge"; echo',
  'printf %s "$secret" | cut -c1-7 | tr -d "\\n"; sleep 0.3; printf %s "$secret" | cut -c8-; ',
  'printf %s "$secret" > /work/copy; printf %s "$secret" > /tmp/copy',
].join("\n");
/** Ends with a dump of memory, where the host allows it. */
const CRASH =
  "ulimit -c unlimited 2>/dev/null; sh -c 'secret=$(cat \"$HOLDFAST_EXECUTION_SECRET_FILE\"); kill -SEGV $$'; exit 3";
const LOOK_AROUND =
  "env; cat /proc/[0-9]*/environ 2>/dev/null; find /work /tmp -type f -exec cat {} + 2>/dev/null; ls -laR /work /tmp";

/** `command`: of another build. Its runs may share a directory of the host. */
export async function findPlanted(options: { command?: string } = {}): Promise<Found> {
  const site = await openExecutionSite(verbose, options);
  const home = scratchDirectory();
  const shared = mkdtempSync(join(tmpdir(), "holdfast-shared-"));
  atEnd(() => rmSync(shared, { recursive: true, force: true }));
  chmodSync(shared, 0o777);
  const agent = await connect(site, { home, shared });
  const planted = [0, 1].map(() => `pl4nted ${randomBytes(12).toString("base64url")}/+"`);
  const [named = "", own = ""] = planted;
  const forms = planted.flatMap(formsOf);
  const found: Found = {};
  const look = (sink: Sink, content: string | Buffer) => {
    const bytes = typeof content === "string" ? Buffer.from(content) : content;
    if (forms.some((form) => bytes.includes(form))) found[sink] = true;
  };

  await site.call(setSecret, { body: { name: "planted", value: named } });
  const user = await createOwner(site);
  const held = step(site, `${SPREAD}\nsleep 1000000`, { secretName: "planted", requestedByUserId: user });
  await ask(site, dispatchPaths.dispatchAsync, { body: held });
  const execution = await runningExecution(site, held);
  await until(async () => {
    const { chunks, ended } = await output(site, execution);
    return ended || chunks.some(({ stream }) => stream === "stderr");
  });
  for (const { args, env } of processes()) {
    look("arguments", args);
    look("environments", env);
  }
  look("results", JSON.stringify(await output(site, execution)));
  await site.call(cancelExecution, { params: { execution_id: execution } });
  const crashing = step(site, `${SPREAD}\n${CRASH}`, { secret: own });
  const later = step(site, LOOK_AROUND, {});
  look("results", (await ask(site, dispatchPaths.dispatch, { body: crashing })).text);
  look("later runs", (await ask(site, dispatchPaths.dispatch, { body: later })).text);
  look("results", (await ask(site, `${dispatchPaths.results}/${encodeURIComponent(requestIdOf(crashing))}`)).text);

  const { items } = await site.call(listExecutions, { query: {} });
  for (const { id } of items) {
    look("results", JSON.stringify(await site.call(getExecution, { params: { execution_id: id } })));
    look("results", JSON.stringify(await output(site, id)));
  }
  const secrets = (await site.call(listSecrets, { query: {} })).items;
  for (const { id } of secrets)
    look("results", JSON.stringify(await site.call(getSecret, { params: { secret_id: id } })));
  look("audit", JSON.stringify(await site.call(listAudit, { query: { limit: 200 } })));
  for (const url of [site.ready.api_url, site.ready.gateway_url])
    look("metrics", await (await fetch(`${url}/metrics`)).text());
  await lookAtDatabase(site, look);
  const { stdout, stderr } = agent.printed();
  look("logs", stdout + stderr);
  for (const path of filesBelow(join(site.installation.dataDir, "postgres/data")))
    look("database files", read(path));
  for (const path of [...filesBelow(site.installation.dataDir), ...filesBelow(home), ...filesBelow(shared)]) {
    if (path.includes("/postgres/data/")) continue;
    if (/\/logs\//.test(path)) look("logs", read(path));
    else look(/\/core(\.\d+)?$/.test(path) ? "core files" : "files", read(path));
  }
  return found;
}

async function connect(site: ExecutionSite, { home, shared }: { home: string; shared: string }) {
  const args = ["--pairing-token", await site.pairingToken(), "--api-base", site.ready.api_url];
  const agent = site.installation.start(["agent", "connect", ...args], {
    ...{ HOME: home, HOLDFAST_EXECUTION_BACKEND: "bubblewrap", HOLDFAST_AGENT_LOG_LEVEL: "debug" },
    ...{ HOLDFAST_EXECUTION_TIMEOUT_MS: "600000", SHARED_BY_RUNS: shared },
  });
  await until(async () => (await site.agents()).some(({ status }) => status === "online"));
  return agent;
}

/** A person, for whom steps with named secrets run. */
async function createOwner({ installation, org }: ExecutionSite): Promise<string> {
  const sql = openDatabaseOf(installation);
  const id = uuidv7();
  await sql`INSERT INTO users (id, email, name, password_hash) VALUES (${id}, 'owner@example.com', 'Owner', 'none')`;
  await sql`INSERT INTO memberships (org_id, user_id, role) VALUES (${org}, ${id}, 'owner')`;
  return id;
}

function step({ org }: ExecutionSite, script: string, changes: Partial<DispatchBody>): DispatchBody {
  const body = shellStep(org, script, { timeoutMs: 600_000, waitMs: 60_000, ...changes });
  const text = JSON.stringify(body).replace('"backend":"host"', '"backend":"bubblewrap"');
  return JSON.parse(text) as DispatchBody;
}

async function runningExecution({ call }: ExecutionSite, body: DispatchBody): Promise<string> {
  let id: string | undefined;
  await until(async () => {
    const { items } = await call(listExecutions, { query: {} });
    id = items.find((one) => one.request_id === requestIdOf(body) && one.status === "running")?.id;
    return id !== undefined;
  });
  return id ?? "";
}

const output = ({ call }: ExecutionSite, execution_id: string) =>
  call(readExecutionOutput, { params: { execution_id }, query: { after: 0 } });

/** Every row of every table, as text; bytes are hexadecimal there. What was erased is still in the files, until they are overwritten. */
async function lookAtDatabase({ installation }: ExecutionSite, look: (sink: Sink, content: string) => void) {
  const sql = openDatabaseOf(installation);
  const tables = await sql<{ name: string }[]>`
    SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`;
  for (const { name } of tables) {
    const rows = await sql.unsafe(`SELECT t::text AS row FROM ${name} t`);
    look("database", rows.map(({ row }) => String(row)).join("\n"));
  }
  await sql`CHECKPOINT`;
}

function formsOf(secret: string): string[] {
  const bytes = Buffer.from(secret);
  // Base64 of text that begins elsewhere: the same but for the first and last characters.
  const shifted = [0, 1, 2].map((by) =>
    Buffer.concat([Buffer.alloc(by), bytes])
      .toString("base64")
      .slice(4, -4),
  );
  const escaped = JSON.stringify(secret).slice(1, -1);
  return [secret, bytes.toString("hex"), ...shifted, encodeURIComponent(secret), escaped];
}

function processes(): { args: string; env: string }[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => ({ args: `${read(`/proc/${pid}/cmdline`)}`, env: `${read(`/proc/${pid}/environ`)}` }));
}

function filesBelow(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

/** Empty if it is gone. */
function read(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch {
    return Buffer.alloc(0);
  }
}
