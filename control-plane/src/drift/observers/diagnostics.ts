// The newest diagnostic record that a host delivered or that was handed in for it. Records of an outage arrive when it is
// over: the time in the record is the one that counts, unless it is in the future.

import { CLOCK_TOLERANCE_SECONDS } from "@holdfast/contracts/node/limits";
import type { DiagnosticRecord } from "@holdfast/contracts/node/protocol";
import type { Recorder } from "../evidence/recorder.ts";
import type { NewObservation } from "../evidence/write.ts";

type Delivered = {
  nodeId: string;
  /** In the order in which they were recorded. */
  records: readonly Omit<DiagnosticRecord, "seq" | "instance_id">[];
  /** By the host's clock. */
  sentAt?: string | undefined;
};

export function observeDiagnostics(recorder: Recorder, now: () => number = Date.now) {
  return ({ nodeId, records, sentAt }: Delivered): void => {
    const receivedAt = now();
    const behindMs = sentAt === undefined ? 0 : receivedAt - Date.parse(sentAt);
    const times = recordedAt(
      records.map(({ at }) => Date.parse(at) + behindMs),
      receivedAt,
    );
    const observations = records.flatMap(({ reason, detail, correlation_id, host }, index) => {
      const time = times[index];
      if (time === undefined) return [];
      const from = { nodeId, observedAt: new Date(time), correlationId: correlation_id ?? undefined };
      return observationsOfRecord({ reason, detail, host }, from);
    });
    recorder.observe(nodeId, observations);
  };
}

/**
 * When records were made, in their order. One from the future is of a clock that has been set right since, so it is older than the
 * next one whose time is possible; taken for a new one, it would say that what is over has begun. Undefined: none follows.
 */
function recordedAt(times: readonly number[], now: number): (number | undefined)[] {
  let next: number | undefined;
  const before = (time: number) => {
    if (time <= now) return time;
    if (next !== undefined) return next - 1;
    return time <= now + CLOCK_TOLERANCE_SECONDS * 1000 ? now : undefined;
  };
  const newestFirst = times.toReversed().map((time) => {
    const at = before(time);
    next = at ?? next;
    return at;
  });
  return newestFirst.toReversed();
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
