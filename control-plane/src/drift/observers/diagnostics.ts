// The newest diagnostic record that a host delivered or that was handed in for it. Records of an outage arrive when it is
// over: the time in the record is the one that counts, as far as it is not in the future.

import type { DiagnosticRecord } from "@holdfast/contracts/node/protocol";
import type { Recorder } from "../evidence/recorder.ts";
import type { NewObservation } from "../evidence/write.ts";

type Delivered = {
  nodeId: string;
  records: readonly Pick<DiagnosticRecord, "at" | "reason" | "detail" | "correlation_id">[];
};

export function observeDiagnostics(recorder: Recorder, now: () => number = Date.now) {
  return ({ nodeId, records }: Delivered): void => {
    recorder.observe(
      nodeId,
      records.map(
        ({ at, reason, detail, correlation_id }): NewObservation => ({
          ...{ nodeId, kind: "diagnostic", value: reason, observer: "host" },
          observedAt: new Date(Math.min(Date.parse(at), now())),
          ...{ detail: { text: detail }, correlationId: correlation_id ?? undefined },
        }),
      ),
    );
  };
}
