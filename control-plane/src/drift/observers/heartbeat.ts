// The findings of a heartbeat. Most heartbeats repeat the one before, so they are handed on only when they changed, and with
// the first heartbeat of a node that this process receives.

import type { Heartbeat } from "@holdfast/contracts/node/protocol";
import { reasonForm } from "@holdfast/contracts/reasons/vocabulary";
import type { Recorder } from "../evidence/recorder.ts";
import type { NewObservation } from "../evidence/write.ts";
import { createMemory } from "./memory.ts";

export type Reported = {
  nodeId: string;
  heartbeat: Pick<Heartbeat, "findings">;
  at: Date;
};

export function observeHeartbeats(recorder: Recorder): (reported: Reported) => void {
  const memory = createMemory();
  return ({ nodeId, heartbeat, at }) => {
    // What is no code was made up by a broken agent.
    const findings = heartbeat.findings.filter(({ reason }) => reasonForm.test(reason));
    // An agent may find something a moment before it has recorded it: the id of the record comes later.
    const codes = findings
      .map(({ reason, correlation_id }) => `${reason}${correlation_id ? " recorded" : ""}`)
      .sort()
      .join(", ");
    if (!memory.isNews(nodeId, codes)) return;
    const observations = findings.map(
      ({ reason, detail, correlation_id }): NewObservation => ({
        ...{ nodeId, kind: "finding", key: reason, value: "present", observer: "agent", observedAt: at },
        ...{ detail: { text: detail }, correlationId: correlation_id ?? undefined },
      }),
    );
    recorder.observe(nodeId, observations, { nodeId, observedAt: at });
  };
}
