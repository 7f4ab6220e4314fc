// What follows from a refused recovery: it is in the audit of the node, and evidence that its agent is alive. An older token
// is evidence of a copy only while the holder of a newer one is there; a restored snapshot presents one, too.

import type { ApiError } from "@holdfast/contracts/errors";
import type { Failure, FailureAudit } from "../audit/failures/failures.ts";
import type { Sql } from "../database/connect.ts";
import { recordObservations } from "../drift/evidence/write.ts";
import { networkOf, takeAttempt } from "../mechanisms/rate-limit.ts";
import type { Signals } from "../mechanisms/signals.ts";
import { RecoveryRefused, type RecoveryRequest } from "./recover.ts";

/** Only failures are limited: guesses by address, a node's own refusals by node. */
const failedRecoveries = { attempts: 60, windowSeconds: 60 };

type Context = { system: Sql; signals: Signals; failures: FailureAudit };
type Origin = { request: RecoveryRequest; address: string; correlationId: string };

/** Throws `rate_limit_exceeded` instead when there were too many. */
export async function onRefused(
  { system, signals, failures }: Context,
  error: ApiError,
  from: Origin,
): Promise<void> {
  const { request, address } = from;
  if (!(error instanceof RecoveryRefused)) {
    if (error.code === "recovery_token_unknown" || error.code === "bundle_unknown") {
      await takeAttempt(system, failedRecoveries, "failed-recovery", networkOf(address));
    }
    return;
  }
  const { claim, connected, code } = error;
  const { nodeId, orgId, name, seq, bundle } = claim;
  const correlationId = bundle?.correlationId ?? from.correlationId;
  await takeAttempt(system, failedRecoveries, "failed-recovery", nodeId);
  const observedAt = new Date();
  const isCopy = code === "recovery_token_superseded" && connected;
  if (code === "recovery_token_superseded") {
    await system`
      UPDATE recovery_tokens SET replayed_at = now() WHERE node_id = ${nodeId} AND seq = ${seq}`;
  }
  const common = { nodeId, observer: "control_plane", observedAt, correlationId } as const;
  const changed = await recordObservations(system, [
    { ...common, kind: "recovery_endpoint", value: "reachable" },
    ...(isCopy
      ? [{ ...common, kind: "instances", value: "two_or_more", detail: { other: request.instance_id } } as const]
      : []),
  ]);
  if (changed.length > 0) signals.publish("evidence", changed);
  const refusal: Failure = {
    ...{ orgId, correlationId, action: "node.recover", result: "denied", reason: code },
    // Whoever sent it has the token, and has proved no key.
    by: { actor_type: "node", actor_id: nodeId, actor_name: name, role: "none" },
    target: { type: "node", id: nodeId, name },
    details: {
      cause: request.cause,
      ...(bundle ? { bundle_id: bundle.id } : { token_seq: seq }),
      address,
      instance_id: request.instance_id,
      boot_id: request.boot_id,
    },
  };
  await system.begin((tx) => failures.failed(tx, refusal));
}
