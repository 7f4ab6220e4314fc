// One WebSocket to a gateway: says hello, pings, and gives up when nothing comes back. What the frames mean is decided elsewhere.

import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { SecureContext } from "node:tls";
import type { AgentFrame, HelloFrame } from "@holdfast/contracts/execution/frames";
import { gatherWrites } from "@holdfast/kit/gather-writes";
import { type RawData, WebSocket } from "ws";
import type { Ended } from "./pacing.ts";

export type LinkTimes = {
  /** Until the WebSocket is open. */
  openMs: number;
  pingMs: number;
  /** Without any frame for so long, the connection is dead. */
  silentMs: number;
};

export const usualTimes: LinkTimes = { openMs: 15_000, pingMs: 15_000, silentMs: 45_000 };

export type Link = {
  /** False: it is not ready, and nothing was sent. */
  send(frame: AgentFrame): boolean;
  isReady(): boolean;
};

export type OwnedLink = Link & {
  /** The gateway has accepted the agent. */
  becomeReady(): void;
  wasReady(): boolean;
  close(): void;
  /** Without waiting for the other side. */
  end(why: Ended): void;
};

export type LinkOptions = {
  url: string;
  token: string;
  secureContext: SecureContext | undefined;
  times: LinkTimes;
  /** Composed when the socket is open. */
  hello: () => HelloFrame;
  onFrame(text: string): void;
  onEnded(ended: Ended): void;
};

/** A dispatch has up to 1 MiB; as JSON inside of JSON it may be several times that. */
const MOST_FRAME_BYTES = 8 * 1024 * 1024;
const CLOSE_NORMAL = 1000;
const LONGEST_REFUSAL = 200;

export function openLink(options: LinkOptions): OwnedLink {
  const { times } = options;
  const socket = new WebSocket(options.url, {
    headers: { authorization: `Bearer ${options.token}` },
    handshakeTimeout: times.openMs,
    perMessageDeflate: false,
    maxPayload: MOST_FRAME_BYTES,
    // Masks keep old proxies from mistaking a page's frames for requests. There is no page here.
    generateMask: () => {},
    ...(options.secureContext ? { secureContext: options.secureContext } : {}),
  });
  let connection: Socket | undefined;
  let ready = false;
  let everReady = false;
  let ended = false;
  let heardAt = performance.now();
  let pings: NodeJS.Timeout | undefined;

  const settle = (why: Ended) => {
    if (ended) return;
    ended = true;
    ready = false;
    clearInterval(pings);
    options.onEnded(why);
  };
  const end = (why: Ended) => {
    socket.terminate();
    settle(why);
  };
  const transmit = (frame: AgentFrame) => {
    // Steps that came together often end together.
    if (connection) gatherWrites(connection);
    socket.send(JSON.stringify(frame));
  };
  const ping = () => {
    if (performance.now() - heardAt > times.silentMs) end({ kind: "silent", ms: times.silentMs });
    else transmit({ type: "ping", ts: Date.now() });
  };

  socket.once("upgrade", (response) => {
    connection = response.socket;
  });
  socket.once("open", () => {
    heardAt = performance.now();
    transmit(options.hello());
    pings = setInterval(ping, times.pingMs);
  });
  socket.on("message", (data: RawData) => {
    heardAt = performance.now();
    if (!ended) options.onFrame(data.toString());
  });
  socket.once("unexpected-response", (_request, response: IncomingMessage) => {
    void excerptOf(response).then((text) => end({ kind: "refused", status: response.statusCode ?? 0, text }));
  });
  socket.on("error", (error) => end({ kind: "unreachable", message: error.message }));
  socket.once("close", (code, reason) => settle({ kind: "closed", code, reason: reason.toString() }));

  return {
    send(frame) {
      if (!ready || socket.readyState !== WebSocket.OPEN) return false;
      transmit(frame);
      return true;
    },
    isReady: () => ready,
    becomeReady() {
      if (ended) return;
      ready = true;
      everReady = true;
    },
    wasReady: () => everReady,
    close() {
      socket.close(CLOSE_NORMAL);
      settle({ kind: "closed", code: CLOSE_NORMAL, reason: "" });
    },
    end,
  };
}

/** What a proxy or another server says, in one line. */
async function excerptOf(response: IncomingMessage): Promise<string> {
  let text = "";
  try {
    for await (const part of response.setEncoding("utf8")) {
      text += part;
      if (text.length > LONGEST_REFUSAL) break;
    }
  } catch {
    // The status says enough.
  }
  return text.slice(0, LONGEST_REFUSAL).replaceAll(/\s+/g, " ").trim();
}
