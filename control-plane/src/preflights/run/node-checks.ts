// Checks of the node itself: by what the api knows of it, by its host where that can be asked, and by tasks that it runs.

import { CallError } from "@holdfast/contracts/call-error";
import { getAllocation } from "@holdfast/contracts/endpoints/allocations";
import { getNode, type NodeDetail } from "@holdfast/contracts/endpoints/nodes";
import type { PreflightHop } from "@holdfast/contracts/preflight/checks";
import type { HostEndpoint, HostPreflight } from "@holdfast/contracts/preflight/host-report";
import { type ProbeCode, reasonOfProbe } from "@holdfast/contracts/preflight/probe-codes";
import { isReason, type ReasonCode } from "@holdfast/contracts/reasons/catalogue";
import { placeOf } from "@holdfast/contracts/reasons/hops";
import { nodeReason } from "@holdfast/contracts/reasons/node";
import { type Check, type Checked, type Found, failed, type Means, passed, unknown } from "./means.ts";
import { runTask } from "./run-task.ts";

/** The server did not respond, or not as a server: anything else about the request is reported as it is. */
export function isServerAway(error: unknown): boolean {
  return !(error instanceof CallError) || error.status >= 500;
}

export const wordsOf = (error: unknown): string => (error as Error).message.slice(0, 300);

export const allocationBinding: Check = async ({ client, allocationId, nodeId }, found, signal) => {
  try {
    const allocation = await client(getAllocation, {
      ...{ params: { allocation_id: allocationId ?? "" }, signal },
    });
    found.allocation = allocation;
    const { status, node_id, node_name, username } = allocation;
    if (node_id !== nodeId)
      return failed("control_plane", "terminal_token_mint_failed", `bound to ${node_name} (${node_id})`);
    if (status !== "active") return failed("control_plane", "terminal_token_mint_failed", `it is ${status}`);
    return passed("control_plane", `${username} on ${node_name}, active`);
  } catch (error) {
    const code = isServerAway(error) ? "control_plane_unreachable" : "terminal_token_mint_failed";
    return failed("control_plane", code, wordsOf(error));
  }
};

const silences = { stale: "heartbeat_stale", offline: "connection_lost", never: "never_heard" } as const;

export const nodeHeartbeat: Check = async ({ client, nodeId }, found, signal) => {
  try {
    const node = await client(getNode, { params: { node_id: nodeId }, signal });
    found.node = node;
    const last = node.heartbeat_at ? `last heartbeat ${node.heartbeat_at}` : "no heartbeat yet";
    if (node.connection === "online") return passed("control_plane", `${last}, by ${node.link ?? "poll"}`);
    return failed("control_plane", silences[node.connection], last);
  } catch (error) {
    if (!isServerAway(error)) throw error;
    return failed("control_plane", "control_plane_unreachable", wordsOf(error));
  }
};

const isOnline = ({ node }: Found) => node?.connection === "online";

/** Once. The host is asked when it can be; its record is read only when the server has no current evidence. */
async function hostOf(means: Means, found: Found, signal: AbortSignal): Promise<HostPreflight | undefined> {
  if (!found.host) {
    try {
      const report = await means.askHost?.(signal);
      found.host = { report, problem: null };
    } catch (error) {
      found.host = { report: undefined, problem: wordsOf(error) };
    }
  }
  return found.host.report ?? (isOnline(found) ? undefined : means.hostRecord);
}

/** A problem that the host found at this hop. */
function ofHost(host: HostPreflight | undefined, hop: PreflightHop): Checked | undefined {
  for (const { reason, detail } of host?.problems ?? []) {
    if (isReason(reason) && hopOfProblem(reason) === hop && !isExplained(reason, host)) {
      return failed("node", reason, detail);
    }
  }
  return undefined;
}

const hopOfProblem = (reason: string) => placeOf(nodeReason(reason)?.at ?? null).hop;

/**
 * By a problem of the way to the API, which is checked later, and which the probe ran into as well: an agent that does not trust the
 * server any more tries to recover, and that may be refused.
 */
function isExplained(reason: string, host: HostPreflight | undefined): boolean {
  const isCut = host?.endpoints.some(({ name, ok }) => name === "node_api" && !ok) ?? false;
  const explanations = nodeReason(reason)?.dependsOn ?? [];
  return (
    isCut &&
    (host?.problems ?? []).some(
      (other) =>
        hopOfProblem(other.reason) === "node_runtime_api_reachability" &&
        (explanations as readonly string[]).includes(other.reason),
    )
  );
}

/** A cause that the server found at this hop. */
function ofServer(node: NodeDetail | undefined, hop: PreflightHop): Checked | undefined {
  const item = node?.attention.find((one) => one.hop === hop);
  const code = item && [item.code, item.reason].find(isReason);
  return item && code ? failed("control_plane", code as ReasonCode, item.message) : undefined;
}

const NO_HOST = "the node does not report, and its host was not asked: use --node-host or --diagnostics";

function byEvidence(hop: PreflightHop, good: (found: Found, host: HostPreflight | undefined) => string): Check {
  return async (means, found, signal) => {
    const host = await hostOf(means, found, signal);
    const wrong = ofHost(host, hop) ?? ofServer(found.node, hop);
    if (wrong) return wrong;
    if (host) return passed("node", good(found, host));
    if (isOnline(found)) return passed("control_plane", good(found, undefined));
    return unknown(found.host?.problem ?? NO_HOST);
  };
}

export const nodeReadiness = byEvidence("node_readiness", ({ node }, host) => {
  const used = host?.disk?.used_percent ?? node?.setup?.root_disk?.used_percent;
  const disk = used === null || used === undefined ? "disk usage not reported" : `${Math.round(used)} % of / used`;
  return `${disk}, diagnostic path writable`;
});

export const nodeRecoveryStatus = byEvidence("node_recovery_status", ({ node }, host) => {
  if (host) return host.agent_running === false ? "identity usable" : "agent runs, identity usable";
  return `${node?.status ?? "active"}, certificate accepted`;
});

/** By the host if it was asked, otherwise by a task: that one probes the addresses of the node's own profile. */
async function endpointsOf(means: Means, found: Found, signal: AbortSignal): Promise<HostEndpoint[]> {
  const host = await hostOf(means, found, signal);
  if (host && host.endpoints.length > 0) return host.endpoints;
  if (!isOnline(found)) return [];
  found.probed ??= await probeByTask(means, signal);
  return found.probed.endpoints;
}

type ProbeResult = {
  endpoints: {
    name: string;
    host: string;
    port: number | null;
    ok: boolean;
    hops: { code: ProbeCode | null; server_code?: string | null; detail: string | null; ms: number }[];
  }[];
};

async function probeByTask(means: Means, signal: AbortSignal): Promise<NonNullable<Found["probed"]>> {
  const params = { endpoints: ["node_api", "node_terminal"], hold_seconds: means.holdSeconds };
  try {
    const task = await runTask(means, { type: "diag.network_probe", params }, signal);
    if (task.status !== "completed") return { endpoints: [], problem: `the probe task is ${task.status}` };
    const { endpoints } = task.result as ProbeResult;
    return { endpoints: endpoints.map(toEndpoint), problem: null };
  } catch (error) {
    return { endpoints: [], problem: wordsOf(error) };
  }
}

function toEndpoint({ name, host, port, ok, hops }: ProbeResult["endpoints"][number]): HostEndpoint {
  const last = hops.at(-1);
  return {
    ...{ name, url: `${host}:${port ?? ""}`, ok, code: ok ? null : (last?.code ?? "tcp_failed") },
    ...{ server_code: last?.server_code ?? null, detail: last?.detail ?? "" },
    ms: hops.reduce((sum, { ms }) => sum + ms, 0),
  };
}

export const runtimeApi: Check = (means, found, signal) => reach("node_api", means, found, signal);
export const nodeTerminal: Check = (means, found, signal) => reach("node_terminal", means, found, signal);

const sides = {
  node_api: { hop: "node_runtime_api_reachability", kind: "api", expected: "node_runtime_api_url" },
  node_terminal: { hop: "node_terminal_reachability", kind: "terminal", expected: "node_terminal_url" },
} as const;

async function reach(name: keyof typeof sides, means: Means, found: Found, signal: AbortSignal): Promise<Checked> {
  const { hop, kind, expected } = sides[name];
  const endpoint = (await endpointsOf(means, found, signal)).find((one) => one.name === name);
  if (endpoint && !endpoint.ok && endpoint.code) {
    const detail = `${endpoint.url}: ${endpoint.code}${endpoint.detail ? `, ${endpoint.detail}` : ""}`;
    // It works from this node in the other environment: what is wrong is the profile of this one.
    if (kind === "terminal" && means.other?.terminal)
      return failed("node", "terminal_env_profile_drift", `${detail}; reachable in ${means.other.environment}`);
    return failed("node", reasonOfProbe(endpoint.code, kind, endpoint.server_code), detail);
  }
  const drift = drifted(found, means.expected[expected], name);
  if (drift)
    return failed("node", kind === "api" ? "endpoint_profile_drift" : "terminal_env_profile_drift", drift);
  if (endpoint) return passed("node", `${endpoint.url} in ${Math.round(endpoint.ms)} ms, certificate accepted`);
  const wrong = ofHost(isOnline(found) ? undefined : means.hostRecord, hop) ?? ofServer(found.node, hop);
  return wrong ?? unknown(found.probed?.problem ?? found.host?.problem ?? NO_HOST);
}

/** An address was named, and the host was not asked about it: the node has to use that one. */
function drifted(found: Found, wanted: string | null, name: keyof typeof sides): string | undefined {
  const used = found.node?.setup?.urls[name] ?? null;
  if (found.host?.report || wanted === null || used === null) return undefined;
  const [one, other] = [URL.parse(wanted)?.origin, URL.parse(used)?.origin];
  return one === other ? undefined : `the node uses ${other}, expected is ${one}`;
}
