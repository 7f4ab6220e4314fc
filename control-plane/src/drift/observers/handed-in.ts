// What operators, or preflight on their behalf, saw on or of a host. Never a proof that the agent is down: only the service
// manager of the host can say so.

import type { BodyOf } from "@holdfast/contracts/endpoint";
import type { addNodeEvidence } from "@holdfast/contracts/endpoints/drift";
import { ApiError } from "@holdfast/contracts/errors";
import { CLOCK_TOLERANCE_SECONDS } from "@holdfast/contracts/node/limits";
import type { NewObservation } from "../evidence/write.ts";
import { observationsOfRecord } from "./diagnostics.ts";

export function observationsHandedIn(
  nodeId: string,
  handedIn: BodyOf<typeof addNodeEvidence>,
  { now, correlationId }: { now: Date; correlationId: string },
): NewObservation[] {
  const at = notInFuture(handedIn.observed_at, now, "observed_at");
  const common = { nodeId, observer: "operator", observedAt: at, correlationId } as const;
  const found = (handedIn.records ?? []).flatMap((record, index) =>
    observationsOfRecord(record, {
      nodeId,
      observedAt: notInFuture(record.last_at ?? record.at, now, `records[${index}].at`),
      correlationId: record.correlation_id ?? correlationId,
    }),
  );
  const { ssh, guest_agent, host_service, host_exec } = handedIn;
  if (ssh) found.push({ ...common, kind: "ssh", value: ssh });
  if (guest_agent) found.push({ ...common, kind: "guest_agent", value: guest_agent });
  if (host_service) found.push({ ...common, kind: "host_service", value: host_service });
  if (host_exec) found.push({ ...common, kind: "host_exec", value: host_exec });
  return found;
}

/** A host's clock may be a little ahead; one that is far ahead would outdate everything that follows. */
function notInFuture(text: string | undefined, now: Date, field: string): Date {
  if (text === undefined) return now;
  const at = new Date(text);
  const aheadMs = at.getTime() - now.getTime();
  if (aheadMs <= 0) return at;
  if (aheadMs <= CLOCK_TOLERANCE_SECONDS * 1000) return now;
  throw new ApiError("invalid_request", {
    message: `${field} is in the future: ${at.toISOString()}.`,
    nextStep: "Check the clock of the host that the evidence is from, and leave such records out.",
  });
}
