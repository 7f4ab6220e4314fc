// The findings of a heartbeat. Most heartbeats repeat the one before, so they are handed on only when they changed, and with
// the first heartbeat of a node that this process receives.

import type { Heartbeat } from "@holdfast/contracts/node/protocol";
import type { Recorder } from "../evidence/recorder.ts";
import type { NewObservation } from "../evidence/write.ts";

export type Reported = {
  nodeId: string;
  heartbeat: Pick<Heartbeat, "findings">;
  at: Date;
  correlationId: string;
};

/** Of nodes that report to this process; those of a forgotten one are handed on again. */
const MOST_REMEMBERED = 50_000;

/** What is none was made up by a broken agent. */
const isCode = /^[a-z0-9_]{1,64}$/;

export function observeHeartbeats(recorder: Recorder): (reported: Reported) => void {
  const lastOf = new Map<string, string>();
  return ({ nodeId, heartbeat, at, correlationId }) => {
    const findings = heartbeat.findings.filter(({ reason }) => isCode.test(reason));
    const codes = findings
      .map(({ reason }) => reason)
      .sort()
      .join(" ");
    const same = lastOf.get(nodeId) === codes;
    lastOf.delete(nodeId);
    for (const oldest of lastOf.keys().take(lastOf.size >= MOST_REMEMBERED ? 1 : 0)) lastOf.delete(oldest);
    lastOf.set(nodeId, codes);
    if (same) return;
    const observations = findings.map(
      ({ reason, detail, correlation_id }): NewObservation => ({
        ...{ nodeId, kind: "finding", key: reason, value: "present", observer: "agent", observedAt: at },
        ...{ detail: { text: detail }, correlationId: correlation_id ?? correlationId },
      }),
    );
    recorder.observe(nodeId, observations, { nodeId, observedAt: at });
  };
}
