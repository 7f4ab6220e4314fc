// The path of the node-facing listener to which agents connect the streams of terminals. A stream whose terminal is at
// another gateway is passed on to it. The api decides whether this node may connect this terminal now.

import { ApiError } from "@holdfast/contracts/errors";
import { admitNodeStream, type TerminalGrant } from "@holdfast/contracts/internal/endpoints";
import type { ApiLink } from "../api-link/link.ts";
import type { Bindings, Owner } from "../bindings/bindings.ts";
import type { NodeRoute } from "../listeners/node-listener.ts";
import { reportedSilence } from "../relay/join-streams.ts";
import { relayUnavailable } from "../relay/opened.ts";
import type { Relay } from "../relay/relay.ts";
import type { Sessions } from "./sessions.ts";

export type AdmitStream = (stream: {
  sessionId: string;
  nodeId: string;
  serial: string;
  correlationId: string;
  /** It is connected already. */
  again?: true;
}) => Promise<TerminalGrant>;

const streamPath = /^\/internal\/v1\/nodes\/([0-9a-f-]{36})\/terminals\/([0-9a-f-]{36})$/;

/** Rejects with ApiError, or ApiUnreachable without a response. */
export function admitStreams(
  api: Pick<ApiLink, "ask" | "instanceId">,
  sessions: Pick<Sessions, "isDraining" | "hasEnded">,
): AdmitStream {
  return async ({ sessionId, nodeId, serial, correlationId, ...more }) => {
    if (sessions.isDraining()) throw new ApiError("shutting_down", { headers: { "retry-after": "1" } });
    if (sessions.hasEnded(sessionId)) throw new ApiError("terminal_session_unknown");
    const { grant } = await api.ask(admitNodeStream, {
      params: { session_id: sessionId },
      body: { node_id: nodeId, serial, gateway_id: api.instanceId, ...more },
      correlationId,
    });
    if (grant.node_id !== nodeId || grant.session_id !== sessionId) throw new ApiError("terminal_session_unknown");
    return grant;
  };
}

/** The other gateway that has the terminal; undefined: it is here, or nowhere yet. */
async function ownerElsewhere(
  sessionId: string,
  isRelayed: boolean,
  { sessions, bindings, instanceId }: Pick<NodeRouteOptions, "sessions" | "bindings" | "instanceId">,
): Promise<Owner | undefined> {
  if (sessions.isDraining() || sessions.has(sessionId) || sessions.hasEnded(sessionId)) return undefined;
  // Never passed on twice: the gateway that did it asks again who has the terminal.
  if (isRelayed) throw relayUnavailable("The terminal is no longer at this gateway.");
  const owner = await bindings.ownerOf(sessionId).catch(() => {
    throw relayUnavailable(
      "This gateway cannot reach Redis, so it cannot find the gateway that has this terminal.",
    );
  });
  return owner?.id === instanceId ? undefined : owner;
}

type NodeRouteOptions = {
  admit: AdmitStream;
  sessions: Pick<Sessions, "streamArrived" | "streamRefused" | "has" | "hasEnded" | "isDraining">;
  bindings: Pick<Bindings, "ownerOf">;
  relay: Pick<Relay, "open">;
  instanceId: string;
};

export function terminalNodeRoute(options: NodeRouteOptions): NodeRoute {
  const { admit, sessions, relay } = options;
  return {
    placeOf(path) {
      const [, nodeId, id] = streamPath.exec(path) ?? [];
      return nodeId === undefined || id === undefined ? undefined : { nodeId, id };
    },
    async admit({ nodeId, id: sessionId, serial, correlationId, origin }) {
      const owner = await ownerElsewhere(sessionId, origin.isRelayed, options);
      if (owner) return relay.open(owner, { nodeId, sessionId, correlationId, origin });
      const grant = await admit({ sessionId, nodeId, serial, correlationId });
      return (socket, watched) => {
        const reported = origin.isRelayed ? reportedSilence(socket) : () => undefined;
        const unresponsiveSince = () => watched.unresponsiveSince() ?? reported();
        void sessions.streamArrived(grant, { socket, serial, unresponsiveSince });
      };
    },
    onCertificateRefused: ({ nodeId, id: sessionId }, error) =>
      sessions.streamRefused({ sessionId, nodeId }, error),
  };
}
