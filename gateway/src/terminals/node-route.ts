// The path of the node-facing listener to which agents connect the streams of terminals. The api decides whether this
// node may connect this terminal now.

import { ApiError } from "@holdfast/contracts/errors";
import { admitNodeStream, type TerminalGrant } from "@holdfast/contracts/internal/endpoints";
import type { ApiLink } from "../api-link/link.ts";
import type { NodeRoute } from "../listeners/node-listener.ts";
import type { Sessions } from "./sessions.ts";

export type AdmitStream = (stream: {
  sessionId: string;
  nodeId: string;
  serial: string;
  correlationId: string;
}) => Promise<TerminalGrant>;

const streamPath = /^\/internal\/v1\/nodes\/([0-9a-f-]{36})\/terminals\/([0-9a-f-]{36})$/;

/** Rejects with ApiError, or ApiUnreachable without a response. */
export function admitStreams(
  api: Pick<ApiLink, "ask" | "instanceId">,
  sessions: Pick<Sessions, "isDraining" | "hasEnded">,
): AdmitStream {
  return async ({ sessionId, nodeId, serial, correlationId }) => {
    if (sessions.isDraining()) throw new ApiError("shutting_down", { headers: { "retry-after": "1" } });
    if (sessions.hasEnded(sessionId)) throw new ApiError("terminal_session_unknown");
    const { grant } = await api.ask(admitNodeStream, {
      params: { session_id: sessionId },
      body: { node_id: nodeId, serial, gateway_id: api.instanceId },
      correlationId,
    });
    if (grant.node_id !== nodeId || grant.session_id !== sessionId) throw new ApiError("terminal_session_unknown");
    return grant;
  };
}

export function terminalNodeRoute(
  admit: AdmitStream,
  sessions: Pick<Sessions, "streamArrived" | "streamRefused">,
): NodeRoute {
  return {
    placeOf(path) {
      const [, nodeId, id] = streamPath.exec(path) ?? [];
      return nodeId === undefined || id === undefined ? undefined : { nodeId, id };
    },
    async admit({ nodeId, id: sessionId, serial, correlationId }) {
      const grant = await admit({ sessionId, nodeId, serial, correlationId });
      return (socket, { unresponsiveSince }) =>
        void sessions.streamArrived(grant, { socket, serial, unresponsiveSince });
    },
    onCertificateRefused: ({ nodeId, id: sessionId }, error) =>
      sessions.streamRefused({ sessionId, nodeId }, error),
  };
}
