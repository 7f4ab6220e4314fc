// What has to be seen before a node counts as recovered (DRIFT-06), in order. Computed from evidence alone: a check is done
// only by a fresh observation of it, never because nothing says otherwise, and never because somebody asked.

import { type Explanation, type RecoveryCheck, recoveryChecks } from "@holdfast/contracts/endpoints/drift";
import type { Known } from "../classify/collector.ts";
import { deriveFacts, type Policy } from "../classify/derive.ts";
import type { Fact } from "../classify/facts.ts";
import { freshForMs, type Observation, type ObservationOf } from "../evidence/observation.ts";

type Finding = { state: "done" | "failed"; by: Observation | undefined } | undefined;
type Look = Known & {
  /** The newest one, if it is fresh. */
  last<K extends Observation["kind"]>(kind: K): ObservationOf<K> | undefined;
  /** When the present or the last incident began: what was done before says nothing about the recovery. */
  beganAt: number;
};

/** `incidentBeganAt`: of the present or the last incident, if there was one. */
export function checklistOf(
  evidence: readonly Observation[],
  options: { policy: Policy; now: number; incidentBeganAt: number | undefined },
): Explanation["checklist"] {
  const { policy, now, incidentBeganAt: beganAt = Number.NEGATIVE_INFINITY } = options;
  const last: Look["last"] = (kind) => lastFresh(evidence, kind, now);
  const look = { ...deriveFacts(evidence, policy, now), last, beganAt };
  return recoveryChecks.map((check) => {
    const found = checks[check](look);
    return {
      ...{ check, state: found?.state ?? "unknown", evidence: found?.by?.id ?? null },
      observed_at: found?.by ? new Date(found.by.observedAt).toISOString() : null,
    };
  });
}

const checks: Readonly<Record<RecoveryCheck, (look: Look) => Finding>> = {
  heartbeat_current: (look) => byFact(look, "heartbeat", "current"),

  certificate_trusted(look) {
    const { facts, sources, last } = look;
    const compared = byFact(look, "signing_ca_vs_ingress_trust", "match");
    if (compared?.state === "failed") return compared;
    if (facts.task_wait === "ingress_mtls_rejected" || facts.local_cert === "expired") {
      return failed(sources.get(facts.local_cert === "expired" ? "local_cert" : "task_wait"));
    }
    // Whoever ends TLS has accepted the certificate that a heartbeat came with.
    const heartbeat = sources.get("heartbeat");
    const issued = last("certificate");
    const presented =
      facts.heartbeat === "current" && issued && heartbeat && heartbeat.observedAt >= issued.observedAt;
    return compared ?? (presented ? { state: "done", by: heartbeat } : undefined);
  },

  task_wait_succeeds: (look) => byFact(look, "task_wait", "succeeds"),

  task_completed({ facts, sources, last, beganAt }) {
    const done = last("task");
    if (done && done.observedAt >= beganAt) return { state: "done", by: done };
    const stuck = (["task_verification", "result_post", "dispatched_task"] as const).find((fact) => facts[fact]);
    return stuck && failed(sources.get(stuck));
  },

  no_expired_work({ facts, sources, last }) {
    if (facts.queued_tasks === "past_expiry") return failed(sources.get("queued_tasks"));
    const queue = last("queue");
    return queue && { state: queue.value === "current" ? "done" : "failed", by: queue };
  },
};

/** A fact with another value shows the opposite; one that is not known shows nothing. */
function byFact({ facts, sources }: Look, fact: Fact, wanted: string): Finding {
  const value = facts[fact];
  return value && { state: value === wanted ? "done" : "failed", by: sources.get(fact) };
}

const failed = (by: Observation | undefined): Finding => ({ state: "failed", by });

function lastFresh<K extends Observation["kind"]>(
  evidence: readonly Observation[],
  kind: K,
  now: number,
): ObservationOf<K> | undefined {
  const newest = evidence
    .filter((one): one is ObservationOf<K> => one.kind === kind)
    .reduce<ObservationOf<K> | undefined>(
      (latest, one) => (latest && latest.observedAt >= one.observedAt ? latest : one),
      undefined,
    );
  const limit = freshForMs[kind] ?? Number.POSITIVE_INFINITY;
  return newest && newest.observedAt + limit > now ? newest : undefined;
}
