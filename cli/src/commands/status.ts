// holdfast status: the state of each process of this machine's installation. Exit code 1 when one is unhealthy. A background job that
// fails is a warning: it runs again at its next turn.

import { type BackgroundJob, type CanaryResult, getPlatformStatus } from "@holdfast/contracts/endpoints/platform";
import { summarizeCanaries } from "@holdfast/contracts/words/canaries";
import { readSettings } from "@holdfast/kit/settings";
import type { Readiness } from "@holdfast/service/health";
import { Command } from "commander";
import { clientOf, findLocalServer } from "../client/connect.ts";
import { pinnedFetch } from "../client/pinned-fetch.ts";
import { exitCodes } from "../failure.ts";
import { printResult, table } from "../output.ts";
import { asItsUser, pathsIn } from "../up/data-directory.ts";
import { dataDirectorySetting } from "../up/data-directory-setting.ts";
import { livingSupervisor, readUpFile, type UpFile } from "../up/up-file.ts";
import { describeJobs, summarizeJobs } from "./status-jobs.ts";

/** `warning`: it does its work, but something is wrong. */
type Part = { ok: boolean; url?: string; reason?: string; warning?: string };
type Status = {
  api: Part & { node_url?: string | null; internal_url?: string | null };
  gateway: Part & { node_url?: string | null; internal_url?: string | null; dispatch_token_file?: string | null };
  worker: Part;
  database: Part & { embedded: boolean; version: string | null };
  agent: Part & { node_id: string | null };
  ingress: Part & { canaries: CanaryResult[] };
  background: Part & { jobs: BackgroundJob[] };
};

/** A machine that is busy takes seconds to respond, and is not to be reported as down. */
const ANSWER_WITHIN_MS = 10_000;

export function statusCommand(): Command {
  return new Command("status")
    .description("show the state of each process of the installation on this machine")
    .option("--json", "print JSON")
    .option("--jobs", "list all background jobs, not only failing ones")
    .action(async (options: { json?: boolean; jobs?: boolean }) => {
      const status = await readStatus();
      printResult(options, status, (shown) => describe(shown, { allJobs: options.jobs === true }));
      if (Object.values(status).some((part) => !part.ok)) process.exitCode = exitCodes.failed;
    });
}

async function readStatus(): Promise<Status> {
  const { dataDir } = readSettings({ dataDir: dataDirectorySetting }, process.env);
  const paths = pathsIn(dataDir);
  const file = asItsUser(dataDir, () => readUpFile(paths.upFile));
  if (!file || !livingSupervisor(file)) return nothingRuns(dataDir, file);
  const [apiPart, gatewayPart, agent] = await Promise.all([
    probe(file, file.api_url, "/readyz"),
    probe(file, file.gateway_url, "/readyz"),
    agentOf(file),
  ]);
  const api = { ...apiPart, node_url: file.node_api_url, internal_url: file.api_internal_url };
  const gateway = {
    ...gatewayPart,
    node_url: file.node_terminal_url,
    internal_url: file.gateway_internal_url,
    dispatch_token_file: file.dispatch_token_file,
  };
  const { embedded, version } = file.database;
  try {
    const platform = await clientOf(findLocalServer())(getPlatformStatus, {});
    const worker = platform.worker.ok ? { ok: true } : { ok: false, reason: "not responding" };
    const database = { ok: true, embedded, version: platform.database.version };
    const ingress = ingressOf(platform.canaries);
    const background = { ok: true, ...summarizeJobs(platform.jobs) };
    return { api, gateway, worker, database, agent, ingress, background };
  } catch {
    const unknown = { ok: false, reason: "unknown: the api does not respond" };
    const unread = { ingress: { ...unknown, canaries: [] }, background: { ...unknown, jobs: [] } };
    return { api, gateway, worker: unknown, database: { ...unknown, embedded, version }, agent, ...unread };
  }
}

/** Whether certificates of the CA are accepted on the way that nodes take. */
function ingressOf(canaries: CanaryResult[]): Status["ingress"] {
  const { state, text } = summarizeCanaries(canaries);
  if (state === "failed") return { ok: false, reason: text, canaries };
  return { ok: true, ...(state === "degraded" ? { warning: text } : {}), canaries };
}

function nothingRuns(dataDir: string, file: UpFile | undefined): Status {
  const reason = `Holdfast is not running on ${dataDir}`;
  const down = { ok: false, reason };
  return {
    api: down,
    gateway: down,
    worker: down,
    database: { ...down, embedded: file?.database.embedded ?? true, version: file?.database.version ?? null },
    agent: { ...down, node_id: null },
    ingress: { ...down, canaries: [] },
    background: { ...down, jobs: [] },
  };
}

/** This machine as a node: unhealthy when its agent does not run or cannot do its work. */
async function agentOf(file: UpFile): Promise<Status["agent"]> {
  if (file.agent === null) return { ok: true, node_id: null, reason: "disabled: HOLDFAST_UP_AGENT=no" };
  const { node_id, url, reason } = file.agent;
  if (reason !== null) return { ok: false, node_id, reason };
  return { ...(await probe({ tls_cert_file: null }, url, "/healthz")), node_id };
}

async function probe(file: Pick<UpFile, "tls_cert_file">, url: string | null, path: string): Promise<Part> {
  if (url === null) return { ok: false, reason: "not ready yet" };
  const send = file.tls_cert_file ? pinnedFetch(file.tls_cert_file) : fetch;
  try {
    const response = await send(`${url}${path}`, { signal: AbortSignal.timeout(ANSWER_WITHIN_MS) });
    if (!response.ok) return { ok: false, url, reason: `${path} returned ${response.status}` };
    const warning = warningIn(await response.json().catch(() => ({})));
    return { ok: true, url, ...(warning === undefined ? {} : { warning }) };
  } catch (error) {
    const cause = (error as { cause?: { code?: string } }).cause?.code ?? "no response";
    return { ok: false, url, reason: cause };
  }
}

/** What a process that does its work reports as wrong all the same. */
function warningIn(answer: unknown): string | undefined {
  const { checks = {} } = answer as { checks?: Readiness["checks"] };
  const wrong = Object.entries(checks).filter(([, { ok }]) => !ok);
  return wrong.length === 0 ? undefined : wrong.map(([name, { reason }]) => reason ?? name).join("; ");
}

function describe(status: Status, { allJobs }: { allJobs: boolean }): string {
  const { reason } = status.api;
  const allDown = Object.values(status).every((part) => !part.ok && part.reason === reason);
  if (allDown && reason) return `${sentence(reason)}. Start it with \`npm start\`.`;
  const rows = Object.entries(status).map(([name, part]) => ({ name, part }));
  const parts = table(rows, [
    { title: "process", of: ({ name }) => name },
    {
      title: "state",
      of: ({ part }) => (!part.ok ? "■ unhealthy" : "warning" in part ? "▲ warning" : "● healthy"),
    },
    {
      title: "",
      of: ({ name, part }) => part.reason ?? part.warning ?? part.url ?? remarkOn(name as keyof Status, status),
    },
  ]);
  const jobs = describeJobs(status.background.jobs, { all: allJobs });
  return [parts, ...describeDispatch(status.gateway), ...(jobs === "" ? [] : [jobs])].join("\n\n");
}

function describeDispatch({ ok, internal_url: url, dispatch_token_file: file }: Status["gateway"]): string[] {
  return ok && url && file ? [`Steps are dispatched at ${url}, with the token in ${file}.`] : [];
}

function remarkOn(name: keyof Status, { database, ingress, background }: Status): string {
  if (name === "ingress") return ingress.warning ?? summarizeCanaries(ingress.canaries).text;
  if (name === "database") return `PostgreSQL ${database.version}${database.embedded ? ", embedded" : ""}`;
  if (name === "background") return background.warning ?? `${background.jobs.length} jobs`;
  return "";
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
