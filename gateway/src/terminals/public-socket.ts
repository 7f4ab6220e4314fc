// The WebSocket of a browser or the CLI. Host, Origin and the form of the token are looked at before the
// upgrade; whether the token is good only after it, so that a refusal reaches the page as an error frame.
// The list of subprotocols holds the token: it is never selected from, echoed or logged.

import type { IncomingMessage, Server } from "node:http";
import type { Duplex } from "node:stream";
import { ApiError } from "@holdfast/contracts/errors";
import { secretPrefix } from "@holdfast/contracts/secrets";
import {
  isWriter,
  TERMINAL_PATH,
  TERMINAL_PROTOCOL,
  TOKEN_PROTOCOL,
  WRITER_PROTOCOL,
} from "@holdfast/contracts/terminal-frames";
import { uuidv7 } from "@holdfast/kit/uuid";
import { isAllowedHost } from "@holdfast/service/hosts";
import type { HttpServer } from "@holdfast/service/http";
import type { Log } from "@holdfast/service/log";
import { correlationIdOf } from "@holdfast/service/refusals";
import { refuseUpgrade } from "@holdfast/service/refuse-upgrade";
import { clientOf } from "./client.ts";
import { peerSockets } from "./peer-sockets.ts";
import type { Sessions } from "./sessions.ts";

export type PublicSocket = {
  /** Sockets that are open. */
  size(): number;
  /** New ones are refused. */
  close(): void;
  stop(withinMs: number): Promise<void>;
};

export type PublicSocketOptions = {
  http: Server;
  hosts: ReadonlySet<string>;
  /** Origins of pages that may open terminals; undefined: the api has not said yet. */
  origins(): readonly string[] | undefined;
  sessions: Pick<Sessions, "join" | "joinFailed">;
  refuseForged: HttpServer["refuseForged"];
  onRefused(code: string): void;
  log: Log;
};

const tokenForm = new RegExp(`^${secretPrefix.terminal}[A-Za-z0-9_-]{20,128}$`);
/** Clients whose token the api is being asked about. */
const MOST_JOINING = 512;

export function servePublicSocket(options: PublicSocketOptions): PublicSocket {
  const { http, log } = options;
  const peers = peerSockets({
    handleProtocols: (offered) => (offered.has(TERMINAL_PROTOCOL) ? TERMINAL_PROTOCOL : false),
  });
  let joining = 0;
  let closing = false;

  const refuse = (socket: Duplex, error: ApiError, correlationId: string) => {
    options.onRefused(error.code);
    log.info({ correlation_id: correlationId, code: error.code, route: TERMINAL_PATH }, "refused an upgrade");
    refuseUpgrade(socket, error, correlationId);
  };

  const admit = (request: IncomingMessage, correlationId: string): Offer => {
    const { host, origin } = request.headers;
    if (pathOf(request) !== TERMINAL_PATH) throw new ApiError("route_not_found");
    if (closing) throw new ApiError("shutting_down", { headers: { "retry-after": "2" } });
    if (!isAllowedHost(host, options.hosts)) throw new ApiError("host_refused");
    options.refuseForged(request, correlationId);
    // Before the api has said which, nobody gets further than to an error frame.
    const allowed = options.origins();
    if (origin !== undefined && allowed && !allowed.includes(origin)) throw new ApiError("origin_refused");
    if (joining >= MOST_JOINING) throw new ApiError("rate_limit_exceeded", { headers: { "retry-after": "1" } });
    return offerOf(request);
  };

  const onUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on("error", () => socket.destroy());
    const correlationId = correlationIdOf(request);
    let offer: Offer;
    try {
      offer = admit(request, correlationId);
    } catch (error) {
      return refuse(socket, error instanceof ApiError ? error : new ApiError("internal_error"), correlationId);
    }
    peers.server.handleUpgrade(request, socket, head, (opened) => {
      peers.watch(opened, socket);
      const client = clientOf(opened, offer.writer);
      const claim = { token: offer.token, correlationId };
      if (options.origins() === undefined)
        return options.sessions.joinFailed(client, claim, new Error("the gateway has not reached the api yet"));
      joining += 1;
      void options.sessions
        .join(client, claim)
        .catch((error: unknown) => {
          log.error({ err: error, correlation_id: correlationId }, "a client was lost on its way to its terminal");
          options.sessions.joinFailed(client, claim, error);
        })
        .finally(() => {
          joining -= 1;
        });
    });
  };

  peers.server.on("wsClientError", (_error, socket) => {
    const details = { fields: [{ field: "headers", problem: "not a WebSocket upgrade of version 13" }] };
    refuse(socket, new ApiError("invalid_request", { details }), uuidv7());
  });
  http.on("upgrade", onUpgrade);

  return {
    size: peers.size,
    close() {
      closing = true;
    },
    async stop(withinMs) {
      await peers.stop(withinMs);
      http.off("upgrade", onUpgrade);
    },
  };
}

type Offer = { token: string; writer: string | undefined };

function offerOf(request: IncomingMessage): Offer {
  const offered = (request.headers["sec-websocket-protocol"] ?? "").split(",").map((one) => one.trim());
  const tokens = offered.filter((one) => one.startsWith(TOKEN_PROTOCOL));
  if (!offered.includes(TERMINAL_PROTOCOL)) {
    throw problem(`must offer ${TERMINAL_PROTOCOL} and ${TOKEN_PROTOCOL}<token>`);
  }
  const [token, ...more] = tokens.map((one) => one.slice(TOKEN_PROTOCOL.length));
  if (token === undefined) {
    throw new ApiError("unauthenticated", {
      message: "The connection offers no terminal token.",
      nextStep:
        "Ask for one with POST /v1/allocations/{allocation_id}/terminal-tokens, and offer it as a subprotocol.",
    });
  }
  if (more.length > 0 || !tokenForm.test(token)) throw problem("must hold one whole terminal token");
  const writer = offered.find((one) => one.startsWith(WRITER_PROTOCOL))?.slice(WRITER_PROTOCOL.length);
  if (writer !== undefined && !isWriter(writer)) throw problem("must name a writer by 32 hexadecimal digits");
  return { token, writer };
}

function problem(text: string): ApiError {
  return new ApiError("invalid_request", {
    details: { fields: [{ field: "headers.sec-websocket-protocol", problem: text }] },
  });
}

function pathOf(request: IncomingMessage): string {
  return (request.url ?? "/").split("?")[0] ?? "/";
}
