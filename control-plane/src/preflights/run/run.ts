// Runs a preflight: makes the checks that the decision asks for, one after the other, and puts the report together.

import {
  checkOf,
  PREFLIGHT_WITHIN_MS,
  type PreflightHop,
  preflightHops,
} from "@holdfast/contracts/preflight/checks";
import { completed, conclude, nextHop, type Outcome } from "@holdfast/contracts/preflight/decide";
import { describeFailure } from "@holdfast/contracts/preflight/failure";
import {
  PREFLIGHT_FORMAT,
  type PreflightHopReport,
  type PreflightReport,
  type PreflightStatus,
} from "@holdfast/contracts/preflight/report";
import { redact } from "@holdfast/kit/redact";
import { type Check, type Checked, type Found, type Means, unknown } from "./means.ts";
import { allocationBinding, nodeHeartbeat, nodeReadiness, nodeRecoveryStatus, runtimeApi } from "./node-checks.ts";
import { taskRoundTrip } from "./task-round-trip.ts";
import {
  browserSocket,
  leaveNothing,
  nodeStream,
  nodeTerminalReach,
  openTask,
  publicRoute,
  readyFrame,
  shellStarts,
  tokenMint,
} from "./terminal-checks.ts";

const checks: Record<PreflightHop, Check> = {
  allocation_binding: allocationBinding,
  node_heartbeat: nodeHeartbeat,
  node_readiness: nodeReadiness,
  node_recovery_status: nodeRecoveryStatus,
  node_runtime_api_reachability: runtimeApi,
  node_task_round_trip: taskRoundTrip,
  terminal_token_mint: tokenMint,
  terminal_public_route: publicRoute,
  browser_terminal_ws: browserSocket,
  terminal_open_task: openTask,
  node_terminal_reachability: nodeTerminalReach,
  gateway_node_stream: nodeStream,
  terminal_ready_frame: readyFrame,
  workload_terminal_startup_failure: shellStarts,
};

export type RunOptions = {
  all: boolean;
  onStart?: (hop: PreflightHop) => void;
  onHop?: (report: PreflightHopReport) => void;
  signal?: AbortSignal;
};

/** Rejects only if it may not be run at all; everything that fails is in the report. */
export async function runPreflight(
  means: Means,
  { all, onStart, onHop, signal }: RunOptions,
): Promise<{ report: PreflightReport; found: Found }> {
  const startedAt = new Date();
  const overall = AbortSignal.any([AbortSignal.timeout(PREFLIGHT_WITHIN_MS), ...(signal ? [signal] : [])]);
  const plan = { scope: means.allocationId === null ? ("node" as const) : ("allocation" as const), all };
  const made = new Map<PreflightHop, Outcome>();
  const reports = new Map<PreflightHop, PreflightHopReport>();
  const found: Found = {};
  const note = (hop: PreflightHop, checked: Checked, ms: number) => {
    made.set(hop, checked.outcome);
    const report = hopReport(hop, checked, { ms, node: means.nodeId });
    reports.set(hop, report);
    onHop?.(report);
  };
  try {
    for (let hop = nextHop(plan, made); hop; hop = nextHop(plan, made)) {
      onStart?.(hop);
      const begun = performance.now();
      const checked = await makeCheck(hop, { means, found, overall });
      note(hop, checked, performance.now() - begun);
      const { corrects } = checked;
      if (corrects) note(corrects.hop, corrects.by, reports.get(corrects.hop)?.ms ?? 0);
    }
  } finally {
    await leaveNothing(means, found);
  }
  const outcomes = completed(plan, made);
  const hops = preflightHops.map(
    (hop) =>
      reports.get(hop) ??
      hopReport(
        hop,
        { outcome: outcomes.get(hop) as Outcome, from: null, detail: "" },
        { ms: 0, node: means.nodeId },
      ),
  );
  return { report: assemble(means, found, { startedAt, hops, conclusion: conclude(plan, made) }), found };
}

async function makeCheck(
  hop: PreflightHop,
  { means, found, overall }: { means: Means; found: Found; overall: AbortSignal },
): Promise<Checked> {
  if (overall.aborted) return unknown("the time for the whole run was over", "no_time");
  const signal = AbortSignal.any([overall, AbortSignal.timeout(checkOf(hop).withinMs)]);
  return checks[hop](means, found, signal);
}

const rounded = (ms: number) => Math.round(ms * 10) / 10;

function hopReport(
  hop: PreflightHop,
  { outcome, from, detail }: Checked,
  { ms, node }: { ms: number; node: string },
): PreflightHopReport {
  const common = { hop, status: outcome.status, checked_from: from, ms: rounded(ms) };
  const seen = redact(detail).slice(0, 600);
  if (outcome.status !== "failed") {
    const why = outcome.status === "not_run" ? outcome.why : null;
    return { ...common, why, detail: seen, failure: null };
  }
  const { message: _, runbook: __, ...failure } = describeFailure(outcome.code, node);
  return { ...common, why: null, detail: seen, failure };
}

type Assembled = {
  startedAt: Date;
  hops: PreflightHopReport[];
  conclusion: ReturnType<typeof conclude>;
};

function assemble(means: Means, found: Found, { startedAt, hops, conclusion }: Assembled): PreflightReport {
  const { node, host, token } = found;
  const report = host?.report ?? (node?.connection === "online" ? undefined : means.hostRecord);
  const failure = hops.find(({ hop }) => hop === conclusion.failed_hop)?.failure;
  const classification = failure ? describeFailure(failure.code as never, means.nodeId) : null;
  const terminalUrl = means.terminalUrl ?? token?.url ?? null;
  return {
    format: PREFLIGHT_FORMAT,
    ...{ started_at: startedAt.toISOString(), finished_at: new Date().toISOString() },
    ...{ allocation_id: means.allocationId, node_id: means.nodeId, session_id: token?.session_id ?? null },
    correlation_id: means.correlationId,
    hostname: node?.facts?.hostname ?? report?.hostname ?? null,
    provider: node?.provider ?? null,
    private_ip: report?.private_ip ?? node?.setup?.source_address ?? node?.address ?? null,
    expected: expectedOf(means, found, terminalUrl),
    disk: diskOf(found, report?.disk ?? undefined),
    ...conclusion,
    classification,
    owner: classification?.owner ?? null,
    ssh: means.hostBy === "ssh" && host ? (host.report ? "succeeded" : "failed") : null,
    browser_proof: !means.smoke
      ? null
      : means.smoke.authenticated && found.smokePassed
        ? "proved"
        : "no browser-equivalent proof",
    compared_with: means.other ? comparedWith(means.other) : null,
    hops,
  };
}

function expectedOf(means: Means, { node }: Found, terminal_url: string | null): PreflightReport["expected"] {
  const { expected, apiUrl } = means;
  return {
    ...{ ...expected, api_url: apiUrl, terminal_url },
    node_runtime_api_url: expected.node_runtime_api_url ?? node?.setup?.urls.node_api ?? null,
    node_terminal_url: expected.node_terminal_url ?? node?.setup?.urls.node_terminal ?? null,
    profile: node?.profile ? `${node.profile.name} version ${node.profile.version}` : null,
  };
}

type Disk = NonNullable<PreflightReport["disk"]>;

function diskOf({ node }: Found, ofHost: Disk | undefined): Disk | null {
  const reported = node?.setup?.root_disk;
  if (ofHost) return ofHost;
  if (!reported) return null;
  const unwritable = node?.attention.some(({ hop_detail }) => hop_detail === "host_disk");
  return { ...reported, diagnostic_path_writable: unwritable ? null : true };
}

const statusOf = (works: boolean | null): PreflightStatus =>
  works === null ? "not_run" : works ? "passed" : "failed";

function comparedWith({ environment, api, terminal }: NonNullable<Means["other"]>) {
  return {
    environment,
    node_runtime_api_reachability: statusOf(api),
    node_terminal_reachability: statusOf(terminal),
  };
}
