// What a terminal's client needs of this command: tokens from the api, sockets of Node.js, reports that arrive before the
// command ends. The gateway of the installation on this machine is reached as its api is: locally, and by the certificate
// that was pinned.

import type { Client } from "@holdfast/contracts/client";
import {
  createConsoleToken,
  createTerminalToken,
  reportTerminalFailure,
} from "@holdfast/contracts/endpoints/terminals";
import { ROUTE_CHECK_MS } from "@holdfast/contracts/terminal/deadlines";
import { MOST_FRAME_BYTES } from "@holdfast/contracts/terminal/frames";
import type { Environment, Socket, SocketEvents } from "@holdfast/terminal-client/environment";
import { reportOf } from "@holdfast/terminal-client/failures";
import { askHealth } from "@holdfast/terminal-client/route-check";
import WebSocket, { type ClientOptions } from "ws";
import type { Server } from "../../client/connect.ts";
import { pinnedFetch, pinnedTls } from "../../client/pinned-fetch.ts";
import { UnreachableError } from "../../failure.ts";

export type CommandEnvironment = Environment<Buffer> & {
  /** Resolves when every report was sent, or could not be. */
  reported(): Promise<unknown>;
};

const CLOSE_NORMAL = 1000;
const CLOSE_WITHIN_MS = 1_000;

/** What a terminal is at. */
export type TerminalAt = { allocationId: string } | { leaseId: string };

export function commandEnvironment(client: Client, server: Server, at: TerminalAt): CommandEnvironment {
  const { certificateFile, gatewayUrl } = server;
  const tls = certificateFile === undefined ? {} : pinnedTls(certificateFile);
  const send = certificateFile === undefined ? fetch : pinnedFetch(certificateFile);
  const reports: Promise<unknown>[] = [];
  /** As the gateway is reached from here. */
  const local = (url: string) =>
    gatewayUrl === undefined ? url : new URL(new URL(url).pathname, gatewayUrl).href.replace(/^http/, "ws");
  return {
    async requestToken({ shell, offset, signal }) {
      const body = { session_id: shell, offset };
      const granted =
        "leaseId" in at
          ? await client(createConsoleToken, { params: { lease_id: at.leaseId }, body, signal })
          : await client(createTerminalToken, { params: { allocation_id: at.allocationId }, body, signal });
      return {
        token: granted.token,
        url: granted.url,
        sessionId: granted.session_id,
        correlationId: granted.correlation_id,
        deadlineSeconds: granted.deadline_seconds,
      };
    },
    openSocket: (url, protocols, events) => openSocket(local(url), protocols, { tls, events }),
    checkRoute(url, unneeded) {
      const signal = AbortSignal.any([unneeded, AbortSignal.timeout(ROUTE_CHECK_MS)]);
      return askHealth(local(url), (health) => send(health.href, { signal })).catch(() => ({ reachable: false }));
    },
    report(sessionId, failure) {
      const { correlationId } = failure;
      const body = reportOf(failure);
      if (!body) return;
      const quoted = correlationId === undefined ? {} : { correlationId };
      const sent = client(reportTerminalFailure, { params: { terminal_id: sessionId }, body, ...quoted });
      reports.push(sent.catch(() => undefined));
    },
    reported: () => Promise.all(reports),
    describeError: (error) => ({
      message: error instanceof Error ? error.message : String(error),
      action: "",
      retryable: error instanceof UnreachableError,
    }),
  };
}

function openSocket(
  url: string,
  protocols: string[],
  { tls, events }: { tls: ClientOptions; events: SocketEvents<Buffer> },
): Socket<Buffer> {
  const socket = new WebSocket(url, protocols, {
    ...tls,
    maxPayload: MOST_FRAME_BYTES,
    perMessageDeflate: false,
    followRedirects: false,
  });
  socket.binaryType = "nodebuffer";
  let failed: Error | undefined;
  socket.on("error", (error) => {
    failed ??= error;
  });
  socket.once("open", events.onOpen);
  socket.on("message", (data: Buffer, isBinary: boolean) =>
    isBinary ? events.onBytes(data) : events.onText(data.toString("utf8")),
  );
  socket.once("close", () =>
    events.onClose(failed?.message ?? "the connection was closed before the shell was ready"),
  );
  return {
    isOpen: () => socket.readyState === WebSocket.OPEN,
    send: (data) => socket.send(data),
    close() {
      if (socket.readyState !== WebSocket.OPEN) return socket.terminate();
      socket.close(CLOSE_NORMAL);
      setTimeout(() => socket.terminate(), CLOSE_WITHIN_MS).unref();
    },
  };
}
