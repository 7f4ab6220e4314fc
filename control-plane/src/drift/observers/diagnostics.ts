// The newest diagnostic record that a host delivered or that was handed in for it. Records of an outage arrive when it is
// over: the time in the record is the one that counts, as far as it is not in the future.

import type { DiagnosticRecord } from "@holdfast/contracts/node/protocol";
import type { Recorder } from "../evidence/recorder.ts";
import type { NewObservation } from "../evidence/write.ts";

type Delivered = {
  nodeId: string;
  records: readonly Omit<DiagnosticRecord, "seq" | "instance_id">[];
  /** By the host's clock. */
  sentAt?: string | undefined;
};

export function observeDiagnostics(recorder: Recorder, now: () => number = Date.now) {
  return ({ nodeId, records, sentAt }: Delivered): void => {
    const behindMs = sentAt === undefined ? 0 : now() - Date.parse(sentAt);
    const observations = records.flatMap(({ at, reason, detail, correlation_id, host }) =>
      observationsOfRecord(
        { reason, detail, host },
        {
          ...{ nodeId, observedAt: new Date(Math.min(Date.parse(at) + behindMs, now())) },
          correlationId: correlation_id ?? undefined,
        },
      ),
    );
    recorder.observe(nodeId, observations);
  };
}

/** Also what the service manager said in it, which is known better than what an agent says of itself. */
export function observationsOfRecord(
  { reason, detail, host }: Pick<DiagnosticRecord, "reason" | "detail" | "host">,
  from: Pick<NewObservation, "nodeId" | "observedAt" | "correlationId">,
): NewObservation[] {
  const common = { ...from, observer: "host", detail: { text: detail } } as const;
  const found: NewObservation[] = [{ ...common, kind: "diagnostic", value: reason }];
  if (host) found.push({ ...common, kind: "host_service", value: host.service });
  if (host?.exec) found.push({ ...common, kind: "host_exec", value: host.exec });
  return found;
}
