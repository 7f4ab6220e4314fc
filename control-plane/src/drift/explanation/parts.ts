// The parts of the contract with a node that can drift independently of each other, each with its own observers. A part has
// drifted when a cause rests on an observation of it; without a fresh observation it is unknown, never in order.

import { type ContractPart, contractParts, type Explanation } from "@holdfast/contracts/endpoints/drift";
import type { Verdict } from "../classify/classify.ts";
import { freshForMs, type Kind, type Observation } from "../evidence/observation.ts";

const partOf: Record<Kind, ContractPart | null> = {
  heartbeat: "process_liveness",
  connection: "process_liveness",
  host_service: "process_liveness",
  host_exec: "process_liveness",
  agent_build: "process_liveness",
  profile: "endpoint_identity",
  address: "endpoint_identity",
  certificate: "node_certificate",
  recovery_token: "node_certificate",
  clock: "node_certificate",
  ca_trust: "signing_ca",
  signing_ca: "signing_ca",
  refusal: "ingress_acceptance",
  instances: "ingress_acceptance",
  recovery_endpoint: "ingress_acceptance",
  task: "task_truth",
  queued_tasks: "task_truth",
  dispatched_tasks: "task_truth",
  task_verification: "task_truth",
  app_status: "app_runtime",
  app_endpoint: "app_runtime",
  app_credential: "app_runtime",
  // What a host says about itself may concern any part; the causes that rest on it say which.
  finding: null,
  started: null,
  host_file: null,
  diagnostic: null,
  disk: null,
  queue: null,
  standing: null,
  ssh: null,
  guest_agent: null,
  terminal: null,
  control_plane: null,
};

/** What every heartbeat says again, if only by not saying anything else. */
const carried: ReadonlySet<Kind> = new Set([
  ...(["heartbeat", "clock", "finding", "profile", "agent_build", "disk"] as const),
]);
const isCarried = ({ kind, value }: Observation) => carried.has(kind) || (kind === "address" && value === "same");

export function isFresh(one: Observation, verdict: Verdict, now: number): boolean {
  const { kind, observedAt } = one;
  // What came with a heartbeat is as fresh as the heartbeat.
  if (isCarried(one)) return verdict.reporting;
  const limit = freshForMs[kind];
  return limit === null || observedAt + limit > now;
}

/** Anyone can make it, so it says nothing about the node. */
const isClaim = ({ detail }: Observation) => detail?.["issuer"] === "unknown";

export function partsOf(evidence: readonly Observation[], verdict: Verdict, now: number): Explanation["parts"] {
  const heardAt = evidence.find(({ kind }) => kind === "heartbeat")?.observedAt ?? 0;
  const lastAt = (one: Observation) => (isCarried(one) ? Math.max(one.observedAt, heardAt) : one.observedAt);
  const used = new Set(verdict.causes.flatMap((cause) => cause.evidence.map(({ id }) => id)));
  return contractParts.map((part) => {
    const own = evidence
      .filter((one) => partOf[one.kind] === part && !isClaim(one))
      .sort((a, b) => lastAt(b) - lastAt(a));
    const bad = own.find(({ id }) => used.has(id));
    const good = own.find((one) => isFresh(one, verdict, now));
    const shown = bad ?? good ?? own[0];
    return {
      ...{ part, state: bad ? "drifted" : good ? "in_order" : "unknown", observer: shown?.observer ?? null },
      observed_at: shown ? new Date(lastAt(shown)).toISOString() : null,
    };
  });
}
