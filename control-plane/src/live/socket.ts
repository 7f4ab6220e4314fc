// The WebSocket of an open page. It is asked for before any hook of the HTTP server runs, so Host,
// Origin, session and membership are all checked here; a refused one gets an ordinary error answer.

import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { ApiError } from "@holdfast/contracts/errors";
import { ORG_HEADER } from "@holdfast/contracts/headers";
import { LIVE_PATH, type LiveMessage } from "@holdfast/contracts/public/live";
import { type Scope, scopesOfRole } from "@holdfast/contracts/public/permissions";
import type { HttpServer } from "@holdfast/service/http";
import { correlationIdOf } from "@holdfast/service/refusals";
import { refuseUpgrade } from "@holdfast/service/refuse-upgrade";
import { type WebSocket, WebSocketServer } from "ws";
import { callerOf } from "../allocations/access.ts";
import { actingOrg, authenticate } from "../api/access.ts";
import type { ApiContext } from "../api/context.ts";
import { isUnavailable } from "../database/connect.ts";
import type { Signals } from "../mechanisms/signals.ts";
import { holdsScope, keyOf } from "../people/actor.ts";
import { gatherChanges, messageFor, type Viewer } from "./changes.ts";
import type { LiveTopic } from "./topic.ts";

/** A reader this far behind is dropped; the page comes back and reads everything anew. */
const MOST_UNSENT_BYTES = 256 * 1024;
/** RFC 6455 leaves 4000–4999 to applications. */
const closeCodes = { signedOut: 4401, stopping: 1001 };

type Listener = {
  socket: WebSocket;
  orgId: string;
  viewer: Viewer;
  holds: (scope: Scope) => boolean;
  headers: IncomingMessage["headers"];
  alive: boolean;
};

export type Live = {
  /** Closes the sockets of sessions that ended and of members who left, and those that do not answer. */
  checkSessions(): void;
  stop(): void;
};

export function serveLive(
  api: ApiContext,
  options: {
    topics: readonly LiveTopic[];
    signals: Signals;
    isAllowedHost: (host: string | undefined) => boolean;
    refuseForged: HttpServer["refuseForged"];
  },
): Live {
  const { topics } = options;
  // Every member has these scopes; a token may have fewer. Topics for operators only are left out for everybody else.
  const needed = [...new Set(topics.map(({ scope }) => scope))].filter((scope) => scopesOfRole.member.has(scope));
  const scopeOf = new Map(topics.map(({ topic, scope }) => [topic, scope]));
  const listeners = new Set<Listener>();
  const server = new WebSocketServer({ noServer: true, maxPayload: 1024, perMessageDeflate: false });
  const publish = (orgId: string, topic: string, messageOf: (viewer: Viewer) => LiveMessage | undefined) => {
    const scope = scopeOf.get(topic);
    for (const listener of listeners) {
      const follows = listener.orgId === orgId && scope !== undefined && listener.holds(scope);
      const message = follows ? messageOf(listener.viewer) : undefined;
      if (message) send(listener.socket, message);
    }
  };
  const changes = gatherChanges({
    topics: topics.filter((topic) => "signal" in topic),
    signals: options.signals,
    system: api.system,
    listening: () => listeners.size > 0,
    publish: (orgId, topic, rows) => publish(orgId, topic, (viewer) => messageFor(viewer, topic, rows)),
    onFailed: (error) => api.log.debug({ err: error }, "a change was not published to open pages"),
  });

  const ends = topics
    .filter((topic) => "subscribe" in topic)
    .map(({ topic, subscribe }) =>
      subscribe(api, (orgId) => publish(orgId, topic, () => ({ type: "changed", topic, ids: [], node_ids: [] }))),
    );

  const onUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on("error", () => socket.destroy());
    const correlationId = correlationIdOf(request);
    admit(request, correlationId).then(
      (admitted) =>
        server.handleUpgrade(request, socket, head, (opened) => {
          const listener: Listener = { socket: opened, ...admitted, headers: request.headers, alive: true };
          listeners.add(listener);
          opened.on("pong", () => {
            listener.alive = true;
          });
          opened.on("close", () => listeners.delete(listener));
          opened.on("error", () => opened.terminate());
        }),
      (error: unknown) => refuseUpgrade(socket, explained(error), correlationId),
    );
  };

  const explained = (error: unknown): ApiError => {
    if (error instanceof ApiError) return error;
    if (isUnavailable(error)) return new ApiError("database_unavailable");
    api.log.error({ err: error, route: LIVE_PATH }, "a page's socket failed in a way nothing handles");
    return new ApiError("internal_error");
  };

  const admit = async (request: IncomingMessage, correlationId: string) => {
    const url = URL.parse(request.url ?? "/", "http://localhost");
    if (url?.pathname !== LIVE_PATH) throw new ApiError("route_not_found");
    if (!options.isAllowedHost(request.headers.host)) throw new ApiError("host_refused");
    options.refuseForged(request, correlationId);
    if (!api.isOwnOrigin(request)) throw new ApiError("origin_refused");
    return viewerOf(request.headers, url.searchParams.get("org_id"));
  };

  const viewerOf = async (headers: IncomingMessage["headers"], orgId: string | null) => {
    const actor = await authenticate(api, { headers });
    if (!actor) throw new ApiError("unauthenticated");
    const org = await actingOrg(api, actor, { headers: { [ORG_HEADER]: orgId ?? undefined } }, undefined);
    if (!needed.every((scope) => holdsScope(actor, org.role, scope))) {
      throw new ApiError("forbidden", { details: { needed: needed.join(", "), role: org.role } });
    }
    const holds = (scope: Scope) => holdsScope(actor, org.role, scope);
    return { orgId: org.id, viewer: { caller: callerOf({ actor, org }), userKey: keyOf(actor) }, holds };
  };

  const checkSessions = () => {
    for (const listener of listeners) {
      if (!listener.alive) {
        listener.socket.terminate();
        continue;
      }
      listener.alive = false;
      listener.socket.ping();
      viewerOf(listener.headers, listener.orgId).then(
        // The role may have changed.
        ({ viewer, holds }) => {
          Object.assign(listener, { viewer, holds });
        },
        (error: unknown) => {
          if (error instanceof ApiError) listener.socket.close(closeCodes.signedOut, error.code);
        },
      );
    }
  };

  api.http.server.on("upgrade", onUpgrade);
  return {
    checkSessions,
    stop() {
      changes.stop();
      for (const end of ends) end();
      api.http.server.off("upgrade", onUpgrade);
      for (const { socket } of listeners) socket.close(closeCodes.stopping);
      server.close();
    },
  };
}

function send(socket: WebSocket, message: LiveMessage): void {
  if (socket.bufferedAmount > MOST_UNSENT_BYTES) socket.terminate();
  else socket.send(JSON.stringify(message));
}
