// What agents of other systems are sent: the fields that they know, and nothing else. They report a step with an unknown
// field or backend as done without running it, so a payload that does not fit is not sent to them at all.

import type { ExecuteFrame, ExecutionKind } from "@holdfast/contracts/execution/frames";
import { AgentExecutePayload, ConnectorActionPayload } from "@holdfast/contracts/execution/payloads";
import type { ExecutionOffer } from "@holdfast/contracts/internal/executions";
import { exhaustive } from "@holdfast/kit/exhaustive";

const knownBackends: ReadonlySet<string> = new Set(["docker", "host"]);

export type ForOlderAgent = { payload: unknown } | { unfit: string };

export function forOlderAgent(kind: ExecutionKind, payload: unknown): ForOlderAgent {
  switch (kind) {
    case "connector.action":
      return reduced(ConnectorActionPayload.safeParse(payload));
    case "agent.execute": {
      const read = AgentExecutePayload.safeParse(payload);
      const backend = read.data?.node.config?.sandbox?.backend;
      if (backend !== undefined && !knownBackends.has(backend))
        return { unfit: `it does not know the backend ${JSON.stringify(backend)}` };
      if (!read.success) return reduced(read);
      const { node, ...rest } = read.data;
      return { payload: { ...rest, node: { ...node, config: node.config ?? {} } } };
    }
    default:
      return exhaustive(kind);
  }
}

type Read = { success: true; data: unknown } | { success: false; error: { issues: { path: PropertyKey[] }[] } };

function reduced(read: Read): ForOlderAgent {
  if (read.success) return { payload: read.data };
  const fields = read.error.issues.map(({ path }) => ["payload", ...path].join("."));
  return { unfit: `it does not know the form of ${[...new Set(fields)].join(", ")}` };
}

export function olderFrame(offer: ExecutionOffer, payload: unknown): ExecuteFrame {
  return {
    type: "execute",
    requestId: offer.request_id,
    organizationId: offer.org_id,
    userId: offer.user_id,
    kind: offer.kind,
    payload,
    ...(offer.secret ? { secret: offer.secret } : {}),
  };
}

/** Time for an agent to connect again and repeat its results, before the request ends. */
const CYCLE_BEFORE_MS = 10_000;

/** When its socket is cycled, for a request that is sent now: late, but in time. */
export function cycleAt(now: number, deadline: number): number {
  return deadline - Math.min(CYCLE_BEFORE_MS, Math.max(0, deadline - now) / 4);
}
