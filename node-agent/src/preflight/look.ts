// `holdfast agent preflight`: this host's part of a preflight. It reads the agent's state, and tries the way to the API and to
// the terminal listener with the node's certificate. It needs no running agent, takes no task, and changes nothing.

import { hostname, networkInterfaces } from "node:os";
import {
  type HostEndpoint,
  type HostPreflight,
  hostPreflightFormat,
} from "@holdfast/contracts/preflight/host-form";
import { redact } from "@holdfast/kit/redact";
import { type EndpointReport, probeEndpoint } from "@holdfast/tasks/diag.network_probe/probe";
import { lookAt } from "../diagnostics/explain.ts";
import { readRing, ringPath } from "../diagnostics/ring-file.ts";
import { readState, rootUsedPercent } from "../diagnostics/self-checks.ts";
import { nodeApiUrl } from "../identity/agent-file.ts";
import type { PreflightRequest } from "./request.ts";

type Options = {
  stateDir: string;
  diskPressurePercent: number;
  /** From the environment, as the agent itself has it. */
  apiUrl: string | undefined;
  request: PreflightRequest;
  now: number;
};

/** Of each hop to an endpoint. */
const HOP_MS = 3_000;
const MOST_RECORDS = 64;
const MOST_TEXT = 400;

const text = (words: string) => redact(words).slice(0, MOST_TEXT);

export async function lookAtHost(options: Options): Promise<HostPreflight> {
  const { stateDir, diskPressurePercent, now } = options;
  const picture = lookAt(stateDir, { now, diskPressurePercent });
  const { findings, last_problem, node } = picture;
  const problems = [...findings, ...(last_problem ? [last_problem] : [])].map(({ reason, detail }) => ({
    ...{ reason, detail: text(detail) },
  }));
  const used = rootUsedPercent();
  return {
    format: hostPreflightFormat,
    ...{ at: new Date(now).toISOString(), hostname: hostname(), private_ip: privateAddress() },
    ...{ node_id: node?.id ?? null, profile: node?.profile ?? null },
    agent_running: picture.state === "enrolled" ? picture.running_pid !== null : null,
    disk: {
      used_percent: used === undefined ? null : Math.round(used * 10) / 10,
      pressure_percent: diskPressurePercent,
      diagnostic_path_writable: readState(stateDir).stateDir === "writable" && picture.records_problem === null,
    },
    problems,
    endpoints: await probeAll(options),
    records: recordsOf(stateDir),
  };
}

async function probeAll({ stateDir, apiUrl, request }: Options): Promise<HostEndpoint[]> {
  const { agent } = readState(stateDir);
  const own = "found" in agent ? agent.found.profile : undefined;
  const inUse = "found" in agent ? nodeApiUrl(agent.found, apiUrl) : undefined;
  const resolve = { ...own?.resolve };
  const wanted: Record<string, string | undefined> = {
    node_api: request.node_runtime_api_url ?? inUse,
    node_terminal: request.node_terminal_url ?? own?.endpoints["node_terminal"],
  };
  resolveTo(resolve, wanted["node_api"], request.node_runtime_resolve_address);
  resolveTo(resolve, wanted["node_terminal"], request.node_terminal_resolve_address);
  const others = { node_api: request.other?.node_api, node_terminal: request.other?.node_terminal };
  const probes = [
    ...Object.entries(wanted).map(([name, url]) => ({ name, as: name, url })),
    ...Object.entries(others).map(([name, url]) => ({ name, as: `other_${name}`, url })),
  ];
  const found = await Promise.all(
    probes.map(async ({ name, as, url }) => {
      if (url === undefined) return [];
      const profile = {
        name: own?.name ?? "given",
        version: own?.version ?? 1,
        resolve,
        endpoints: { [name]: url },
      };
      const report = await probeEndpoint(name, {
        ...{ stateDir, loopback: true, holdSeconds: request.hold_seconds ?? 0 },
        profile: { ...own, ...profile } as never,
        timing: { signal: AbortSignal.timeout(30_000), hopMs: HOP_MS },
      });
      return [toEndpoint(report, { name: as, url })];
    }),
  );
  return found.flat();
}

/** Where a private name leads while there is no private DNS. */
function resolveTo(resolve: Record<string, string[]>, url: string | undefined, address: string | undefined): void {
  const host = URL.parse(url ?? "")?.hostname;
  if (host && address) resolve[host] = [address];
}

function toEndpoint({ ok, hops }: EndpointReport, { name, url }: { name: string; url: string }): HostEndpoint {
  const last = hops.at(-1);
  return {
    ...{ name, url: text(url), ok, code: ok ? null : (last?.code ?? "tcp_failed") },
    ...{ server_code: last?.server_code ?? null, detail: text(last?.detail ?? "") },
    ms: Math.round(hops.reduce((sum, { ms }) => sum + ms, 0) * 10) / 10,
  };
}

function recordsOf(stateDir: string): HostPreflight["records"] {
  try {
    return readRing(ringPath(stateDir))
      .slice(-MOST_RECORDS)
      .map(({ at, last_at, reason, detail, correlation_id }) => ({
        ...{ at, last_at, reason, detail: text(detail), correlation_id: correlation_id ?? null },
      }));
  } catch {
    return [];
  }
}

/** The first address of this host in a network. */
function privateAddress(): string | null {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return all.find(({ internal, family }) => !internal && family === "IPv4")?.address ?? null;
}
