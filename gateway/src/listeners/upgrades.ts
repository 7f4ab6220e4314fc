// Upgrades of a listener to WebSockets, the same for browsers and nodes: a request is admitted or refused with the error
// envelope, and counted. What an admitted socket is for is decided by its route.

import type { EventEmitter } from "node:events";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { ApiError } from "@holdfast/contracts/errors";
import { correlationIdOf } from "@holdfast/service/refusals";
import { refuseUpgrade } from "@holdfast/service/refuse-upgrade";
import type { WebSocket, WebSocketServer } from "ws";
import type { PeerSockets, Watched } from "./peer-sockets.ts";

/** Called once, with the open socket. */
export type AcceptSocket = (socket: WebSocket, watched: Watched) => void;

/** For a socket that its route watches by itself, with a server of its own. */
export type OwnSocket = { server: WebSocketServer; accept(socket: WebSocket, connection: Duplex): void };

export type UpgradeOptions = {
  /** Of HTTP or HTTPS. */
  server: Pick<EventEmitter, "on" | "off">;
  peers: PeerSockets;
  /** Those that admissions name. */
  ownServers?: readonly WebSocketServer[];
  /** Rejects with the ApiError to respond with. */
  admit(request: IncomingMessage, correlationId: string): Promise<AcceptSocket | OwnSocket>;
  /** The error if `admit` rejected with anything but an ApiError. */
  unexpected(): ApiError;
  onRefused(error: ApiError, correlationId: string): void;
  /** Added to every refusal. */
  headers: Record<string, string>;
};

/** Returns a function that stops serving upgrades. */
export function serveUpgrades(options: UpgradeOptions): () => void {
  const { server, peers } = options;

  const refuse = (socket: Duplex, error: ApiError, correlationId: string) => {
    options.onRefused(error, correlationId);
    refuseUpgrade(socket, error, correlationId, options.headers);
  };

  const onUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on("error", destroy);
    const correlationId = correlationIdOf(request);
    options.admit(request, correlationId).then(
      (admitted) => {
        if (typeof admitted === "object") {
          return admitted.server.handleUpgrade(request, socket, head, (opened) => {
            // From here on ws handles errors.
            socket.off("error", destroy);
            admitted.accept(opened, socket);
          });
        }
        peers.server.handleUpgrade(request, socket, head, (opened) =>
          admitted(opened, peers.watch(opened, socket)),
        );
      },
      (error: unknown) => refuse(socket, error instanceof ApiError ? error : options.unexpected(), correlationId),
    );
  };

  for (const one of [peers.server, ...(options.ownServers ?? [])]) {
    one.on("wsClientError", (_error, socket, request) => {
      const details = { fields: [{ field: "headers", problem: "not a WebSocket upgrade of version 13" }] };
      refuse(socket, new ApiError("invalid_request", { details }), correlationIdOf(request));
    });
  }
  server.on("upgrade", onUpgrade);
  return () => server.off("upgrade", onUpgrade);
}

/** One function for all sockets: a closure would keep the request and its headers for as long as the socket is open. */
function destroy(this: Duplex): void {
  this.destroy();
}
