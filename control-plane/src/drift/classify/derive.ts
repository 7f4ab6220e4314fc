// From observations to facts, at a time. What is too old, or was disproved by a later heartbeat, is no fact any more.

import { certificateStage, RENEWAL_OVERDUE_AT } from "@holdfast/contracts/node/certificate-stage";
import { nodeReason } from "@holdfast/contracts/reasons/node";
import type { TerminalFailureCode } from "@holdfast/contracts/reasons/terminal";
import type { Observation } from "../evidence/observation.ts";
import { type Collector, createCollector, type Known } from "./collector.ts";
import { factsOfTerminal } from "./reported.ts";

export type Policy = {
  heartbeatStaleAfterMs: number;
  /** An agent whose connection breaks opens another one at once; longer than this, something is wrong. */
  reconnectWithinMs: number;
  /** A node that is silent for less than this usually returns by itself: a reboot, a restart. */
  returnExpectedWithinMs: number;
  clockToleranceMs: number;
  diskPressurePercent: number;
  diskFullPercent: number;
};

export function deriveFacts(evidence: readonly Observation[], policy: Policy, now: number): Known {
  const collector = createCollector(evidence, now);
  // In the order of trust: what the control plane saw itself comes before what others claim.
  silence(collector, policy);
  standing(collector);
  refusals(collector);
  accepted(collector);
  otherAddresses(collector);
  fullDisk(collector, policy);
  agent(collector, policy);
  host(collector, policy);
  identity(collector);
  tasks(collector);
  operations(collector);
  terminals(collector);
  rightAddresses(collector);
  apps(collector);
  platform(collector);
  nothingHeard(collector, policy);
  return collector.known();
}

function silence({ last, set, review, expectHeartbeatBefore, now }: Collector, policy: Policy): void {
  const heartbeat = last("heartbeat");
  if (!heartbeat) return;
  const heardAt = heartbeat.observedAt;
  if (now - heardAt < -policy.clockToleranceMs) {
    set("heartbeat", "in_future", heartbeat);
    review(heardAt - policy.clockToleranceMs);
    return;
  }
  const connection = last("connection");
  const closed = connection?.value === "closed" && connection.observedAt >= heardAt ? connection : undefined;
  const lostAt = closed ? closed.observedAt + policy.reconnectWithinMs : Number.POSITIVE_INFINITY;
  const silentFrom = Math.min(heardAt + policy.heartbeatStaleAfterMs, lostAt);
  if (now <= silentFrom) {
    set("heartbeat", "current", heartbeat);
    set("agent_process", "running", heartbeat);
    expectHeartbeatBefore(silentFrom + 1);
    return;
  }
  const returnsUntil = heardAt + policy.returnExpectedWithinMs;
  set("heartbeat", "stale", closed ?? heartbeat);
  set("silence", now <= returnsUntil ? "brief" : "long", heartbeat);
  review(returnsUntil + 1);
}

function standing({ last, set }: Collector): void {
  const decided = last("standing");
  if (!decided) return;
  const { value } = decided;
  if (value === "quarantined" || value === "revoked" || value === "retired") set("node_standing", value, decided);
  else if (value !== "enrolling") set("node_standing", "active", decided);
}

/** What the node ran into last. A heartbeat since then disproves it. */
function refusals({ fresh, set, last, facts }: Collector): void {
  const refusal = fresh("refusal");
  if (!refusal || refusal.observedAt <= (last("heartbeat")?.observedAt ?? Number.NEGATIVE_INFINITY)) return;
  const { endpoint, issuer } = refusal.detail ?? {};
  // A certificate of an unknown issuer is a claim: it proves nothing about the node that it names.
  if (issuer === "unknown") return;
  set("agent_process", "running", refusal);
  if (endpoint === "node_facing") set("endpoint", endpoint, refusal);
  if (refusal.value === "cert_expired") set("local_cert", "expired", refusal);
  else if (refusal.value === "certificate_not_yet_valid") set("clock", "skewed", refusal);
  else if (issuer === "earlier") {
    // We have signed it ourselves, with a CA that is no longer trusted here.
    set("task_wait", "ingress_mtls_rejected", refusal);
    set("signing_ca_vs_ingress_trust", "mismatch", refusal);
  } else if (facts.heartbeat !== "current" || isOutlived(last)) {
    set("task_wait", facts.node_standing === "active" ? "identity_rejected" : "denied", refusal);
  }
}

/** Whether the node got another certificate after its last heartbeat, which so says nothing about the one it uses now. */
function isOutlived(last: Collector["last"]): boolean {
  const [heartbeat, certificate] = [last("heartbeat"), last("certificate")];
  return heartbeat !== undefined && certificate !== undefined && certificate.observedAt > heartbeat.observedAt;
}

function accepted({ sources, set, facts }: Collector): void {
  const heartbeat = sources.get("heartbeat");
  if (heartbeat && facts.heartbeat === "current") set("task_wait", "succeeds", heartbeat);
}

function otherAddresses({ last, set }: Collector): void {
  const [api, terminal] = [last("profile", "api"), last("profile", "terminal")];
  if (api?.value === "differs") set("node_addresses", "differ_from_profile", api);
  if (terminal?.value === "differs") set("terminal_address", "differs_from_profile", terminal);
}

/**
 * After the agent's findings and the terminals: it may use an address that is accepted for a while and have failed to adopt the
 * new one, or somebody else may be at the right one. That they matched says nothing about a node that stopped reporting: its settings may be why.
 */
function rightAddresses({ last, set, facts }: Collector): void {
  if (facts.heartbeat !== "current") return;
  const [api, terminal] = [last("profile", "api"), last("profile", "terminal")];
  if (api) set("node_addresses", "match_profile", api);
  if (terminal) set("terminal_address", "matches_profile", terminal);
}

/** Before the agent's findings: its "nearly full" does not contradict a disk that is full. */
function fullDisk({ last, set }: Collector, policy: Policy): void {
  const disk = last("disk");
  if (disk && usedPercent(disk) >= policy.diskFullPercent) set("root_filesystem", "full", disk);
}

const usedPercent = ({ detail }: Observation) => Number(detail?.["used_percent"] ?? 0);

/** What the agent says. After silence began, a finding counts only if it can explain the silence. */
function agent(collector: Collector, policy: Policy): void {
  const { last, fresh, set, facts, findings, report } = collector;
  const clock = last("clock");
  if (clock) {
    const skew = Math.abs(Number(clock.detail?.["skew_ms"] ?? 0));
    set("clock", skew > policy.clockToleranceMs ? "skewed" : "in_sync", clock);
  }
  const current = facts.heartbeat === "current";
  for (const finding of findings()) {
    if (finding.key !== undefined && (current || silenceCauses.has(finding.key))) report(finding.key, finding);
  }
  // Records of an outage arrive when it is over: only those after the last heartbeat are about the present.
  const record = fresh("diagnostic");
  if (record && record.observedAt > (last("heartbeat")?.observedAt ?? Number.NEGATIVE_INFINITY)) {
    report(record.value, record);
  }
  const build = last("agent_build");
  if (build) set("agent_build", build.value, build);
}

function host({ last, fresh, set, facts }: Collector, policy: Policy): void {
  const heardAt = last("heartbeat")?.observedAt ?? Number.NEGATIVE_INFINITY;
  const disk = last("disk");
  const pressureFrom = Number(disk?.detail?.["pressure_percent"] ?? policy.diskPressurePercent);
  if (disk && usedPercent(disk) >= pressureFrom && facts.heartbeat === "current") {
    set("root_filesystem", "pressure", disk);
  }
  const service = fresh("host_service");
  if (service && service.value !== "active" && service.observedAt > heardAt) {
    set("host_service", service.value, service);
  }
  const exec = fresh("host_exec");
  if (exec && exec.value !== "runs" && exec.observedAt > heardAt) set("host_exec", exec.value, exec);
  const address = fresh("address");
  if (address?.value === "changed") set("reported_address", "differs_from_recorded", address);
}

function identity(collector: Collector): void {
  const { last, fresh, set, review, now } = collector;
  const certificate = last("certificate");
  if (certificate) {
    const notBefore = Number(certificate.detail?.["not_before"]);
    const notAfter = Number(certificate.detail?.["not_after"]);
    const stage = certificateStage({ notBefore, notAfter }, now);
    set("local_cert", certificateWords[stage], certificate);
    review(Math.floor(notBefore + (notAfter - notBefore) * RENEWAL_OVERDUE_AT) + 1);
    review(notAfter + 1);
  }
  recoveryToken(collector);
  const endpoint = fresh("recovery_endpoint");
  if (endpoint) set("recovery_endpoint", endpoint.value, endpoint);
  // Whoever quarantined the node because of it decides when it is over, also when one of the two is silent meanwhile.
  const instances = isQuarantined(last("standing")) ? last("instances") : fresh("instances");
  if (instances?.value === "two_or_more") set("live_instances", "two_or_more", instances);
}

function recoveryToken({ last, set, review, now }: Collector): void {
  const token = last("recovery_token");
  if (!token) return;
  const expiresAt = Number(token.detail?.["expires_at"] ?? Number.POSITIVE_INFINITY);
  if (token.value !== "current" || now <= expiresAt) set("recovery_token", token.value, token);
  else set("recovery_token", "expired", token);
  if (token.value === "current" && Number.isFinite(expiresAt)) review(expiresAt + 1);
}

function isQuarantined(standing: Observation | undefined): boolean {
  return standing?.value === "quarantined" || standing?.value === "revoked";
}

const certificateWords = { current: "valid", renewal_overdue: "overdue", expired: "expired" } as const;

function tasks({ fresh, set }: Collector): void {
  const queued = fresh("queued_tasks");
  if (queued?.value === "past_expiry") set("queued_tasks", "past_expiry", queued);
  const dispatched = fresh("dispatched_tasks");
  if (dispatched?.value === "past_lease") set("dispatched_task", "past_lease", dispatched);
  const verification = fresh("task_verification");
  if (verification?.value === "failed") set("task_verification", "failed", verification);
}

function operations({ fresh, set }: Collector): void {
  const ssh = fresh("ssh");
  if (ssh) set("ssh", ssh.value, ssh);
  const guest = fresh("guest_agent");
  if (guest) set("guest_agent", guest.value, guest);
}

function terminals({ fresh, setAll }: Collector): void {
  const terminal = fresh("terminal");
  if (terminal) setAll(factsOfTerminal[terminal.value as TerminalFailureCode] ?? {}, terminal);
}

function apps({ fresh, set }: Collector): void {
  const status = fresh("app_status");
  if (status) set("status_probe", status.value === "expired" ? "expired" : "completed", status);
  if (status && status.value !== "expired") set("runtime_state", status.value, status);
  const endpoint = fresh("app_endpoint");
  if (endpoint?.value === "failed_past_threshold") set("endpoint_probe", "failed_past_threshold", endpoint);
  const credential = fresh("app_credential");
  if (credential?.value === "failed_repeatedly") set("credential_operation", "failed_repeatedly", credential);
}

function platform({ last, fresh, set, facts }: Collector): void {
  /** A node that still reports came another way than through the ingress that does not trust our CA, or keeps an older connection. */
  const hasReportedSince = ({ firstAt, observedAt }: Observation) =>
    facts.heartbeat === "current" && (last("heartbeat")?.observedAt ?? 0) > (firstAt ?? observedAt);
  const ready = fresh("control_plane");
  if (ready) set("control_plane", ready.value, ready);
  const trust = fresh("ca_trust");
  if (trust && (trust.value === "match" || !hasReportedSince(trust))) {
    set("signing_ca_vs_ingress_trust", trust.value, trust);
  }
  const signing = last("signing_ca");
  if (signing) set("signing_ca", signing.value, signing);
}

/** A node that was enrolled and never reported, and of which nobody else reports anything. */
function nothingHeard({ last, set, facts, review, now }: Collector, policy: Policy): void {
  const since = last("standing") ?? last("certificate");
  if (!since || facts.heartbeat !== undefined || facts.agent_process !== undefined) return;
  const until = since.observedAt + policy.returnExpectedWithinMs;
  if (now > until) set("heartbeat", "never", since);
  else review(until + 1);
}

/** What can keep a node from reporting. */
const silenceCauses: ReadonlySet<string> = new Set([
  ...(nodeReason("agent_down")?.dependsOn ?? []),
  ...[
    "auth_failed",
    "ingress_mtls_rejected",
    "edge_terminates_tls",
    "api_unreachable",
    "api_name_unresolved",
    "state_dir_read_only",
    "identity_key_missing",
  ],
  "trust_bundle_invalid",
]);
