// What each observer must get, according to the documents. Deliberately not read from the product's catalogue: a
// mistake there must be seen here.

import type { Observer } from "./evidence.ts";
import { readAnswerKey } from "./matrix/answer-key.ts";

export type ExpectedSighting = {
  by: Observer;
  code: string;
  /** How soon after the fault it must be seen. */
  within: number;
};

type Words = {
  hop: string | null;
  hop_detail: string | null;
  signal: string | null;
  owner: string | null;
  message: RegExp;
  next_step: RegExp;
};

const place = (hop: string, hop_detail: string, signal: string, owner: string) => ({
  hop,
  hop_detail,
  signal,
  owner,
});
const reach = (detail: string, signal = "node_agent_api_unreachable", owner = "network") =>
  place("node_runtime_api_reachability", detail, signal, owner);
const auth = place("node_recovery_status", "identity", "node_agent_auth_failed", "platform");

/** A host that reboots returns within three minutes: until then nobody has to look. */
const silenceAdvice =
  /^(Wait three minutes: a host that reboots|Check that host(, network)? and agent are running\. `holdfast agent diagnose`)/;

/** What the dashboard, the host and the delivered history say of a reason. */
const reasons: Partial<Record<string, Words>> = {
  heartbeat_stale: {
    ...place("node_heartbeat", "heartbeat", "node_agent_heartbeat_stale", "node"),
    message: /^The last heartbeat came \d+ seconds ago\.$/,
    next_step: silenceAdvice,
  },
  connection_lost: {
    ...place("node_heartbeat", "heartbeat", "node_agent_heartbeat_stale", "node"),
    message:
      /^(The agent closed its connection|The connection of the agent was lost|The agent stopped responding, and its connection was closed) \d+ seconds? ago\.$/,
    next_step: silenceAdvice,
  },
  agent_down: {
    ...place("node_recovery_status", "agent_process", "node_agent_process_down", "node"),
    message: /agent is not running on this host/,
    next_step: /^Start it: `holdfast agent run`/,
  },
  agent_version_drift: {
    ...place("node_recovery_status", "agent_process", "node_agent_binary_invalid", "node"),
    message: /another version/,
    next_step: /^Install the server's agent/,
  },
  api_unreachable: {
    ...reach("tcp"),
    message: /cannot reach the server over the network/,
    next_step: /check name resolution, route and firewall/,
  },
  api_name_unresolved: {
    ...reach("dns"),
    message: /cannot resolve the server's name/,
    next_step: /getent hosts/,
  },
  link_slow: {
    ...reach("tcp", "node_agent_link_slow"),
    message: /responses reach this host slowly\. the last heartbeats took [\d.]+ s/,
    next_step: /check for delay and packet loss/,
  },
  trust_bundle_invalid: {
    ...reach("tls", "node_agent_api_tls_failed", "node"),
    message: /file with the server's CA is missing, or is not the one/,
    next_step: /^Restore it, or enroll this node again/,
  },
  control_plane_unreachable: {
    ...reach("api", "control_plane_unreachable", "platform"),
    message: /the server behind it is not ready/,
    next_step: /`holdfast status` on the server/,
  },
  edge_rate_limited: {
    ...reach("edge", "edge_rate_limited", "platform"),
    message: /limits this agent's requests/,
    next_step: /checks the limits of the ingress/,
  },
  auth_failed: {
    ...auth,
    message:
      /^(The server rejected this node's certificate \d+ seconds? ago\. This certificate was replaced|The server does not accept this agent's certificate)/,
    next_step: /holdfast node token create --node/,
  },
  identity_revoked: {
    ...auth,
    message: /no longer accepts this node's identity/,
    next_step: /holdfast node token create --node/,
  },
  disk_full: {
    ...place("node_readiness", "host_disk", "disk_full", "node"),
    message: /disk that holds the agent's state is full/,
    next_step: /^Free space/,
  },
  clock_skew: {
    ...place("node_readiness", "host_clock", "clock_skew", "node"),
    message: /^(The node's clock is (9|10) minutes (ahead of|behind) the server's|This host's clock differs.*)\.$/,
    next_step: /^Synchronize the time first/,
  },
  task_refused: {
    ...place("latest_operation", "task_claim", "node_task_claim_failed", "platform"),
    message: /refused a task/,
    next_step: /^The detail names the reason/,
  },
  task_result_failed: {
    ...place("latest_operation", "task_result", "node_task_result_post_failed", "network"),
    message: /could not deliver a task's result yet/,
    next_step: /^Nothing is lost/,
  },
};

/** What the requester of a task reads. */
const nowhere = { hop: null, hop_detail: null, signal: null, owner: null };
const answers: Partial<Record<string, Words>> = {
  task_not_taken: {
    ...nowhere,
    message: /^The node did not claim the task before it expired/,
    next_step: /`holdfast node show`/,
  },
  task_type_unknown: {
    ...nowhere,
    message: /agent does not support this task type/,
    next_step: /^Update the agent/,
  },
  clock_skew: {
    ...nowhere,
    message: /clock differs from the server's/,
    next_step: /^Synchronize the time first/,
  },
  database_unavailable: {
    ...nowhere,
    message: /database/,
    next_step: /\w{3,}.*again/i,
  },
  unreachable: {
    ...nowhere,
    message: /is unreachable \(ECONNREFUSED\)\. On the server, run `holdfast status`/,
    next_step: /^$/,
  },
};

export function wordsFor({ by, code }: { by: Observer; code: string }): Words {
  const words = (by === "user" ? answers : reasons)[code];
  if (!words) throw new Error(`the expectations do not say what ${by} is given for ${code}`);
  return words;
}

export type ExpectedTrace = {
  /** The product shows an id at all. */
  id: boolean;
  /** It was made because of the fault, and so within seconds of it. */
  ofTheFault: boolean;
  audit: { action: string; result: string; reason: string | null; target: string } | null;
  delivered: string | null;
  server_log: string | null;
  /** One of these. */
  host_log: readonly string[];
};

const nothing = { id: false, ofTheFault: false, audit: null, delivered: null, server_log: null, host_log: [] };

/** Reasons that are about one task carry its id, which is the id of the user's request. */
const ofTask = new Set(["task_refused", "task_result_failed"]);
/** What the agent finds by itself, without a request. */
const found = new Set(["disk_full", "clock_skew", "link_slow", "trust_bundle_invalid"]);

/** Where the id of a sighting must lead. */
export function traceFor({ by, code }: { by: Observer; code: string }): ExpectedTrace {
  if (by === "user") return ofAnswer(code);
  if (code === "agent_down") return nothing;
  if (code === "heartbeat_stale" || code === "connection_lost") {
    return {
      ...{ id: true, ofTheFault: true, delivered: null, server_log: "request" },
      // The last heartbeat that arrived; its answer may have been the first thing that the fault met.
      host_log: ["heartbeat accepted", "request failed"],
      audit: { action: "node.offline", result: "failed", reason: code, target: "node" },
    };
  }
  if (by === "dashboard" && code === "auth_failed") {
    return {
      ...{ id: true, ofTheFault: true, delivered: "auth_failed" },
      ...{ server_log: "refused a node's request", host_log: ["request failed"] },
      audit: { action: "node.connect", result: "denied", reason: "certificate_replaced", target: "node" },
    };
  }
  return {
    ...{ id: true, ofTheFault: !ofTask.has(code), delivered: code, server_log: "audit" },
    host_log: [ofTask.has(code) || found.has(code) ? code : "request failed"],
    audit: { action: "node.report", result: "failed", reason: code, target: "node" },
  };
}

function ofAnswer(code: string): ExpectedTrace {
  if (code === "unreachable") return nothing;
  // PostgreSQL is down: there is nothing to write an audit event to.
  if (code === "database_unavailable") return { ...nothing, id: true, ofTheFault: true, server_log: "request" };
  return {
    ...{ id: true, ofTheFault: true, delivered: null, server_log: "request", host_log: [] },
    audit: { action: "task.create", result: "allowed", reason: null, target: "task" },
  };
}

const matrix = readAnswerKey();
const rowOf = (name: string) => matrix.find(({ row }) => row === name);

/** As the page classifies what these rows are about. */
export function causesOf(rows: readonly string[]): string[] {
  return rows.map((name) => {
    const { reason = null, signal = null, severity = null, owner = null } = rowOf(name) ?? {};
    return causeText({ reason, signal, severity, owner });
  });
}

type Classified = Record<"reason" | "signal" | "severity" | "owner", string | null>;

/** Without a signal of its own, the reason may be published in its place. */
export function causeText({ reason, signal, severity, owner }: Classified): string {
  return [reason, signal === reason ? null : signal, severity, owner].filter((one) => one !== null).join(" ");
}

export function forbiddenOf(rows: readonly string[], said: ReadonlySet<string>): string[] {
  return rows.flatMap((name) => rowOf(name)?.must_not_say ?? []).filter((code) => said.has(code));
}
