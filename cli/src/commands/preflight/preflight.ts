// holdfast preflight: whether a node, and an allocation's terminal on it, are ready; if not, which hop is broken, whose it is
// and what to do. Exit codes: 0 ready, 1 a failed hop or a check that could not be made, 2 wrong usage.

import { CallError } from "@holdfast/contracts/call-error";
import type { Client } from "@holdfast/contracts/client";
import { getAllocation } from "@holdfast/contracts/endpoints/allocations";
import { addNodeEvidence } from "@holdfast/contracts/endpoints/drift";
import { getMe } from "@holdfast/contracts/endpoints/me";
import { addPreflightReport } from "@holdfast/contracts/endpoints/preflights";
import type { PreflightReport } from "@holdfast/contracts/preflight/report";
import type { Found, Means } from "@holdfast/control-plane/preflights/run/means";
import { runPreflight } from "@holdfast/control-plane/preflights/run/run";
import { UsageError } from "@holdfast/kit/settings";
import { uuidv7 } from "@holdfast/kit/uuid";
import { Command } from "commander";
import { clientOf, findServer, findServerAndOrg, type Server, withServerOptions } from "../../client/connect.ts";
import { findNode, isNodeId } from "../../client/find-node.ts";
import { pinnedTls } from "../../client/pinned-fetch.ts";
import { exitCodes, UnreachableError } from "../../failure.ts";
import { printResult, printWarnings } from "../../output.ts";
import { wholeNumber } from "../options.ts";
import { edgeHeaders } from "./edge.ts";
import { compareWith, readHostRecord } from "./files.ts";
import type { Options } from "./options.ts";
import { askOverSsh } from "./ssh.ts";
import { describeReport, showProgress } from "./table.ts";

export function preflightCommand(): Command {
  return withServerOptions(new Command("preflight"))
    .description("check a node, and a terminal on it, hop by hop; stops at the first failed hop")
    .option("--api-base <url>", "the API; default: the server that commands connect to")
    .option("--terminal-base <url>", "the terminal gateway as browsers reach it; default: as the API says")
    .option("--allocation-id <id>", "check an allocation's terminal too; without it, only the node is checked")
    .option("--node-id <id or name>", "default: the node of the allocation")
    .option("--node-host <host>", "run the node's probes there over SSH: `holdfast agent preflight`")
    .option("--node-user <user>", "the user for SSH")
    .option(
      "--node-runtime-api-url <url>",
      "the node-facing API that the node must reach; default: the node's profile",
    )
    .option("--node-runtime-resolve-address <ip>", "where the name of that URL leads from the node")
    .option("--node-terminal-url <url>", "the node-facing terminal listener; default: the node's profile")
    .option("--node-terminal-resolve-address <ip>", "where the name of that URL leads from the node")
    .option("--run-ws-smoke", "also check the terminal and notification WebSockets as a browser opens them")
    .option(
      "--edge-cookie-file <file>",
      "cookies of a signed-in browser, for --run-ws-smoke; or HOLDFAST_EDGE_COOKIE",
    )
    .option("--edge-header-file <file>", "headers for the edge, `name: value` each; or HOLDFAST_EDGE_HEADERS")
    .option(
      "--diagnostics <file>",
      "the host's diagnostics.log, or the output of `holdfast agent preflight --json`",
    )
    .option(
      "--compare-profile <file>",
      "another environment: its profile, or a report of `holdfast preflight --json`",
    )
    .option(
      "--idle-seconds <n>",
      "how long a held request must survive; default: 1",
      wholeNumber({ min: 0, max: 8 }),
    )
    .option("--all", "go on after a failed hop")
    .option("--no-store", "do not hand in the report")
    .action(preflight);
}

async function preflight(options: Options): Promise<void> {
  const server = await serverFor(options);
  const client = clientOf(server);
  const target = await findTarget(client, options);
  const means = await meansOf(options, { server, client, ...target });
  const progress = showProgress({ quiet: options.json === true });
  const { report, found } = await runPreflight(means, { all: options.all === true, ...progress });
  const canTake = report.classification?.code !== "control_plane_unreachable";
  if (options.store && canTake) await handIn(client, report, { found, means });
  printResult(options, report, describeReport);
  if (report.result !== "ready") process.exitCode = exitCodes.failed;
}

/** How long the server has to respond before the checks begin, and to take the report. */
const SERVER_MS = 5_000;

/** A server that does not respond is a finding, not a failure of the command. */
async function serverFor(options: Options): Promise<Server> {
  const base = options.apiBase;
  if (base !== undefined && !URL.canParse(base)) throw new UsageError(`--api-base is not a URL: ${base}`);
  const env = base ? withUrl(base) : process.env;
  const known = findServer(options, env);
  try {
    await clientOf({ ...known, orgId: undefined })(getMe, { signal: AbortSignal.timeout(SERVER_MS) });
  } catch (error) {
    if (error instanceof UnreachableError || (error instanceof CallError && error.status >= 500)) return known;
    throw error;
  }
  return findServerAndOrg(options, env);
}

/** A saved token is sent only to the server that it is for. */
function withUrl(base: string): NodeJS.ProcessEnv {
  if (process.env["HOLDFAST_TOKEN"]) return { ...process.env, HOLDFAST_API_URL: base };
  const { url, token } = findServer({});
  if (new URL(url).origin === new URL(base).origin)
    return { ...process.env, HOLDFAST_API_URL: base, HOLDFAST_TOKEN: token };
  throw new UsageError(
    `You are signed in to ${url}, not to ${base}. Set HOLDFAST_TOKEN to an API token of that server.`,
  );
}

type Target = { nodeId: string; allocationId: string | null };

async function findTarget(client: Client, { nodeId, allocationId }: Options): Promise<Target> {
  if (nodeId === undefined && allocationId === undefined)
    throw new UsageError("Name what to check: --node-id, --allocation-id, or both.");
  if (allocationId !== undefined && !isNodeId(allocationId))
    throw new UsageError("--allocation-id is not an id. List them with `holdfast allocation list`.");
  if (nodeId !== undefined) {
    if (isNodeId(nodeId)) return { nodeId: nodeId.toLowerCase(), allocationId: allocationId ?? null };
    return { nodeId: (await findNode(client, nodeId)).id, allocationId: allocationId ?? null };
  }
  const { node_id } = await client(getAllocation, { params: { allocation_id: allocationId ?? "" } });
  return { nodeId: node_id, allocationId: allocationId ?? null };
}

async function meansOf(
  options: Options,
  { server, client, nodeId, allocationId }: Target & { server: Server; client: Client },
): Promise<Means> {
  const expected = {
    node_runtime_api_url: options.nodeRuntimeApiUrl ?? null,
    node_runtime_resolve_address: options.nodeRuntimeResolveAddress ?? null,
    node_terminal_url: options.nodeTerminalUrl ?? null,
    node_terminal_resolve_address: options.nodeTerminalResolveAddress ?? null,
  };
  const compared = options.compareProfile ? compareWith(options.compareProfile) : undefined;
  const headers = options.runWsSmoke ? edgeHeaders(options) : {};
  const holdSeconds = options.idleSeconds ?? 1;
  const means: Means = {
    ...{ client, vantage: "command_line", nodeId, allocationId, correlationId: uuidv7(), apiUrl: server.url },
    // The installation on this machine may have a public name that does not resolve here.
    terminalUrl: options.terminalBase ?? server.gatewayUrl,
    ...{ expected, holdSeconds, other: compared?.other },
    hostRecord: options.diagnostics ? readHostRecord(options.diagnostics) : undefined,
    smoke: options.runWsSmoke
      ? { headers, authenticated: Object.keys(headers).length > 0, origin: new URL(server.url).origin }
      : undefined,
    tls: server.certificateFile ? pinnedTls(server.certificateFile) : undefined,
  };
  if (options.nodeHost === undefined) return means;
  const request = { ...withoutNulls(expected), hold_seconds: holdSeconds, ...compared?.request };
  const askHost = async (signal: AbortSignal) => {
    const report = await askOverSsh({ host: options.nodeHost ?? "", user: options.nodeUser }, request, signal);
    const works = (name: string) => report.endpoints.find((one) => one.name === name)?.ok ?? null;
    if (compared) {
      means.other ??= { environment: compared.environment, api: null, terminal: null };
      means.other.api ??= works("other_node_api");
      means.other.terminal ??= works("other_node_terminal");
    }
    return report;
  };
  return Object.assign(means, { askHost, hostBy: "ssh" as const });
}

function withoutNulls(values: Record<string, string | null>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).filter((entry): entry is [string, string] => entry[1] !== null),
  );
}

/** What was seen becomes evidence. A server that cannot take it is already in the report. */
async function handIn(
  client: Client,
  report: PreflightReport,
  { found, means }: { found: Found; means: Means },
): Promise<void> {
  const { node_id, correlation_id: correlationId } = report;
  const call = { correlationId, signal: AbortSignal.timeout(SERVER_MS) };
  const host = found.host?.report ?? (found.node?.connection === "online" ? undefined : means.hostRecord);
  try {
    if (host && host.records.length > 0) {
      const body = { records: host.records };
      await client(addNodeEvidence, { params: { node_id }, body, ...call });
    }
    await client(addPreflightReport, { body: { report }, ...call });
  } catch (error) {
    printWarnings([`The report was not stored: ${(error as Error).message}`]);
  }
}
