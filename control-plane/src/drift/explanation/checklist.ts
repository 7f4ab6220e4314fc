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
  /** The recovery has to be proved by the link of the instance that reports now. */
  ownLink: boolean;
};

/**
 * `incidentBeganAt`: of the present or the last incident, if there was one. `proofAfter`: when what needs proof was
 * repaired; a check is done only by what was observed later.
 */
export function checklistOf(
  evidence: readonly Observation[],
  options: { policy: Policy; now: number; incidentBeganAt: number | undefined; proofAfter?: number | undefined },
): Explanation["checklist"] {
  const { policy, now, incidentBeganAt: beganAt = Number.NEGATIVE_INFINITY, proofAfter } = options;
  const last: Look["last"] = (kind) => lastFresh(evidence, kind, now);
  const look = { ...deriveFacts(evidence, policy, now), last, beganAt, ownLink: proofAfter !== undefined };
  return recoveryChecks.map((check) => {
    const any = checks[check](look);
    const tooOld = any?.state === "done" && proofAfter !== undefined && (any.by?.observedAt ?? 0) <= proofAfter;
    const found = tooOld ? undefined : any;
    return {
      ...{ check, state: found?.state ?? "unknown", evidence: found?.by?.id ?? null },
      observed_at: found?.by ? new Date(found.by.observedAt).toISOString() : null,
    };
  });
}

const checks: Readonly<Record<RecoveryCheck, (look: Look) => Finding>> = {
  heartbeat_current: (look) => byFact(look, "heartbeat", "current"),

  certificate_trusted(look) {
    const { facts, sources, last, ownLink } = look;
    const compared = byFact(look, "signing_ca_vs_ingress_trust", "match");
    if (compared?.state === "failed") return compared;
    if (facts.task_wait === "ingress_mtls_rejected" || facts.local_cert === "expired") {
      return failed(sources.get(facts.local_cert === "expired" ? "local_cert" : "task_wait"));
    }
    // Whoever ends TLS has accepted the certificate that a heartbeat came with.
    const heartbeat = sources.get("heartbeat");
    const issued = last("certificate");
    const since = heartbeat && issued && heartbeat.observedAt >= issued.observedAt;
    const presented =
      facts.heartbeat === "current" && since && (ownLink ? isPresented(heartbeat, issued) : true)
        ? ({ state: "done", by: heartbeat } as const)
        : undefined;
    return ownLink ? presented : (compared ?? presented);
  },

  task_wait_succeeds: (look) => byFact(look, "task_wait", "succeeds"),

  task_completed({ facts, sources, last, beganAt, ownLink }) {
    const done = last("task");
    const counts =
      done && done.observedAt >= beganAt && (!ownLink || isOfSameInstance(done, sources.get("heartbeat")));
    if (counts) return { state: "done", by: done };
    const stuck = (["task_verification", "result_post", "dispatched_task"] as const).find((fact) => facts[fact]);
    return stuck && failed(sources.get(stuck));
  },

  no_expired_work({ facts, sources, last }) {
    if (facts.queued_tasks === "past_expiry") return failed(sources.get("queued_tasks"));
    const queue = last("queue");
    return queue && { state: queue.value === "current" ? "done" : "failed", by: queue };
  },
};

/** The heartbeat came with the certificate that was issued last. */
const isPresented = (heartbeat: Observation, issued: Observation) =>
  isSame(heartbeat.detail?.["serial"], issued.detail?.["serial"]);

const isOfSameInstance = (task: Observation, heartbeat: Observation | undefined) =>
  isSame(task.detail?.["instance_id"], heartbeat?.detail?.["instance_id"]);

/** What is not known is no proof. */
const isSame = (one: unknown, other: unknown) => typeof one === "string" && one === other;

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
