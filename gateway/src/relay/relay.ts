// Passes the stream of a node on to the gateway that has its terminal. This gateway authenticates with its service
// certificate and forwards the node's, which the owner verifies and has admitted by the api as if the node had connected to
// it. Frames, backpressure and close codes pass through unchanged.

import { Agent } from "node:https";
import { CERTIFICATE_HEADER, CORRELATION_HEADER } from "@holdfast/contracts/headers";
import { BOOT_HEADER, INSTANCE_HEADER } from "@holdfast/contracts/node/limits";
import { RELAY_HANDSHAKE_MS } from "@holdfast/contracts/terminal/deadlines";
import { MOST_FRAME_BYTES, nodeStreamPath } from "@holdfast/contracts/terminal/frames";
import type { Log } from "@holdfast/service/log";
import { gatewayOf } from "@holdfast/service/node-identity/certificate";
import { WebSocket } from "ws";
import { clientTls, type ServiceIdentity } from "../api-link/enroll.ts";
import type { Owner } from "../bindings/bindings.ts";
import type { StreamOrigin } from "../listeners/node-listener.ts";
import { peerSockets } from "../listeners/peer-sockets.ts";
import type { AcceptSocket } from "../listeners/upgrades.ts";
import { type Joined, joinStreams } from "./join-streams.ts";
import { opened, relayUnavailable } from "./opened.ts";

export type RelayedStream = { nodeId: string; sessionId: string; correlationId: string; origin: StreamOrigin };

export type Relay = {
  use(identity: ServiceIdentity): void;
  /** Rejects with the owner's refusal, or with `terminal_relay_unavailable`. */
  open(owner: Owner, stream: RelayedStream): Promise<AcceptSocket>;
  /** The number of streams that are passed on. */
  size(): number;
  /** Ends the streams; their nodes connect to another gateway. */
  stop(withinMs: number): Promise<void>;
};

/** It must be this very process, whatever its address is called: another one may have the address by now. */
function agentFor(identity: ServiceIdentity, owner: Owner): Agent {
  return new Agent({
    ...clientTls(identity),
    keepAlive: false,
    checkServerIdentity: (_host, { subjectaltname }) =>
      gatewayOf(subjectaltname) === owner.id ? undefined : new Error("another process has this address"),
  });
}

export function createRelay({ log }: { log: Log }): Relay {
  const peers = peerSockets();
  const joined = new Set<Joined>();
  let identity: ServiceIdentity | undefined;

  const dial = (owner: Owner, { nodeId, sessionId, correlationId, origin }: RelayedStream) => {
    if (!identity || origin.certificate === undefined) throw relayUnavailable();
    const url = new URL(nodeStreamPath(nodeId, sessionId), owner.url);
    url.protocol = "wss:";
    return new WebSocket(url, {
      agent: agentFor(identity, owner),
      headers: {
        // Every listener answers to it, by whichever address it is reached.
        host: "localhost",
        [CERTIFICATE_HEADER]: origin.certificate,
        [INSTANCE_HEADER]: origin.instance.instanceId,
        [BOOT_HEADER]: origin.instance.bootId,
        [CORRELATION_HEADER]: correlationId,
      },
      perMessageDeflate: false,
      maxPayload: MOST_FRAME_BYTES,
      handshakeTimeout: RELAY_HANDSHAKE_MS,
      autoPong: false,
      generateMask: () => undefined,
    });
  };

  return {
    use(now) {
      identity = now;
    },
    async open(owner, stream) {
      const { nodeId, sessionId, correlationId, origin } = stream;
      const names = { correlation_id: correlationId, session_id: sessionId, node_id: nodeId, owner: owner.id };
      const upstream = dial(owner, stream);
      // The node may leave before its own connection is a WebSocket.
      const abandon = () => upstream.terminate();
      origin.socket.once("close", abandon);
      if (origin.socket.destroyed) abandon();
      const below = await opened(upstream, (reason) =>
        log.warn({ ...names, url: owner.url, reason }, "could not pass a stream on"),
      );
      peers.watch(upstream, below);
      log.debug(names, "passes a node's stream on to the gateway that has its terminal");
      return (node, watched) => {
        origin.socket.off("close", abandon);
        const pair = joinStreams({ node, watched, upstream });
        joined.add(pair);
        upstream.once("close", () => joined.delete(pair));
      };
    },
    size: () => joined.size,
    async stop(withinMs) {
      for (const pair of joined) pair.leave();
      await peers.stop(withinMs);
    },
  };
}
