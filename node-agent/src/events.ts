// What the real agent does with the events of its core: history, log, metrics, and the shells of a node that is revoked.

import { isRejection } from "@holdfast/contracts/reasons/node";
import type { AgentCore, CoreEvents } from "./core/agent-core.ts";
import { CONNECTED } from "./diagnostics/connected.ts";
import type { History } from "./diagnostics/history.ts";
import type { Session } from "./link/session.ts";
import type { Log } from "./log.ts";
import type { Metrics } from "./metrics.ts";

export function agentEvents(agent: {
  history: History;
  session: Session;
  metrics: Metrics;
  log: Log;
  core: () => Pick<AgentCore, "status">;
  /** Ends every shell of this host. */
  endTerminals: () => void;
  onStatus: ((text: string) => void) | undefined;
}): CoreEvents {
  const { history, session, metrics, log } = agent;
  let recorded: "stream" | "poll" | undefined;
  const recordLink = () => {
    recorded = session.link()?.kind;
    const how = recorded === "stream" ? "over a stream" : "by polling";
    history.record("process_alive", `${CONNECTED} ${session.apiUrl()} ${how}`);
  };
  return {
    record: history.record,
    correlationIds: history.correlationIds,
    onCount: (name) => metrics.count(`${name}_total`),
    onAdopted: ({ change: { identity } }) => {
      if (!identity) return;
      const { serial, notAfter } = identity.certificate;
      log.info("certificate renewed", { serial, not_after: new Date(notAfter).toISOString() });
    },
    onConnected: () => {
      history.connected(true);
      metrics.set("connection_up", 1);
      recordLink();
      agent.onStatus?.(`connected to ${session.apiUrl()} as ${session.agent().node_name}`);
    },
    onFailure: ({ reason }, correlationId) => {
      log.debug("request failed", { correlation_id: correlationId });
      history.connected(false);
      metrics.set("connection_up", 0);
      agent.onStatus?.(`not connected: ${reason}`);
      const isDoubted =
        isRejection(reason) || reason === "server_tls_untrusted" || reason === "ingress_mtls_rejected";
      const joinedAgain = isDoubted && session.reconsider();
      const isOver = reason === "identity_revoked" || reason === "identity_retired";
      if (isOver && !joinedAgain) agent.endTerminals();
    },
    onHeartbeat: (correlationId) => {
      log.debug("heartbeat accepted", { correlation_id: correlationId });
      if (session.link()?.kind !== recorded) recordLink();
      metrics.set("last_heartbeat_timestamp_seconds", Date.now() / 1000);
      metrics.set("clock_skew_seconds", (agent.core().status().skew?.offset ?? 0) / 1000);
      metrics.set("certificate_expires_seconds", (session.identity()?.certificate.notAfter ?? 0) / 1000);
      history.upload();
    },
  };
}
