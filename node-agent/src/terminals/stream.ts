// A terminal's WebSocket to the gateway, dialled with the node's certificate. Loaded with the first
// terminal: an idle agent loads no WebSocket library.

import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import https from "node:https";
import type { LookupFunction, Socket } from "node:net";
import { createSecureContext } from "node:tls";
import { CORRELATION_HEADER, gatewayListeners, LISTENER_HEADER } from "@holdfast/contracts/headers";
import { BOOT_HEADER, INSTANCE_HEADER } from "@holdfast/contracts/node/limits";
import { STREAM_HANDSHAKE_MS } from "@holdfast/contracts/terminal/deadlines";
import { MOST_FRAME_BYTES, type NodeFrame, nodeStreamPath } from "@holdfast/contracts/terminal/frames";
import { createLiveness } from "@holdfast/contracts/terminal/liveness";
import WebSocket from "ws";
import type { Credentials } from "../link/client.ts";
import { LinkFailure } from "../link/failures.ts";

export type StreamHears = {
  onBytes(bytes: Buffer): void;
  onText(text: string): void;
  /** There is room again after `congested`. */
  onRoom(): void;
  /** `closed`: cleanly, by both sides. */
  onGone(closed: boolean): void;
};

export type Stream = {
  listen(hears: StreamHears): void;
  send(frame: NodeFrame): void;
  sendBytes(bytes: Buffer): void;
  /** Too much is waiting to be sent. */
  congested(): boolean;
  /** Sends what is waiting, then closes. */
  close(): void;
  /** Called every `PING_MS`: pings the gateway, and closes the stream when it does not respond. */
  check(): void;
};

export type Dialler = {
  /** Rejects with a LinkFailure, the socket's error, or the signal's reason. */
  dial(stream: { url: string; sessionId: string; correlationId: string; signal: AbortSignal }): Promise<Stream>;
  /** From the next connection on. */
  close(): void;
};

const CONGESTED_BYTES = 1024 * 1024;
const ANSWER_BYTES = 16 * 1024;
const CLOSE_NORMAL = 1000;

export type DiallerOptions = {
  nodeId: string;
  instanceId: string;
  bootId: string;
  /** Called for every connection, so that the next one uses a renewed certificate. Throws a HostProblem while there is none. */
  credentials: () => Credentials;
  lookup: LookupFunction;
  /** How long a gateway may take to answer an attempt to connect. */
  handshakeMs?: number;
};

export function createDialler(options: DiallerOptions): Dialler {
  let pool: { agent: https.Agent; of: Credentials } | undefined;

  /** Its agent keeps TLS sessions, so that the next connection is cheaper, and no connections. */
  const agentFor = (credentials: Credentials) => {
    const { keyPem, chainPem, roots } = credentials;
    const same = pool?.of.chainPem === chainPem && pool.of.roots.join() === roots.join();
    if (pool && same) return pool.agent;
    pool?.agent.destroy();
    const secureContext = createSecureContext({
      key: keyPem,
      cert: chainPem,
      ca: [...roots],
      minVersion: "TLSv1.2",
    });
    const agent = new https.Agent({
      keepAlive: false,
      maxCachedSessions: 4,
      secureContext,
      lookup: options.lookup,
    });
    pool = { agent, of: credentials };
    return agent;
  };

  return {
    dial({ url, sessionId, correlationId, signal }) {
      const address = new URL(nodeStreamPath(options.nodeId, sessionId), url);
      address.protocol = "wss:";
      const socket = new WebSocket(address, {
        agent: agentFor(options.credentials()),
        headers: {
          [INSTANCE_HEADER]: options.instanceId,
          [BOOT_HEADER]: options.bootId,
          [CORRELATION_HEADER]: correlationId || randomUUID(),
        },
        perMessageDeflate: false,
        maxPayload: MOST_FRAME_BYTES,
        // A gateway that hangs may accept a connection and send nothing.
        handshakeTimeout: options.handshakeMs ?? STREAM_HANDSHAKE_MS,
        // Masks keep old proxies from mistaking a page's frames for requests. There is no page here, and
        // a mask of zeros spares a pass over every byte.
        generateMask: () => {},
      });
      return opened(socket, signal);
    },
    close: () => pool?.agent.destroy(),
  };
}

function opened(socket: WebSocket, signal: AbortSignal): Promise<Stream> {
  return new Promise((resolve, reject) => {
    let below: Socket | undefined;
    const stop = () => {
      reject(signal.reason);
      socket.terminate();
    };
    const settled = () => signal.removeEventListener("abort", stop);
    signal.addEventListener("abort", stop, { once: true });
    socket.on("error", (error) => {
      settled();
      reject(error);
    });
    socket.once("unexpected-response", (_request, response: IncomingMessage) => {
      settled();
      refusal(response)
        .then(reject, reject)
        .finally(() => socket.terminate());
    });
    socket.once("upgrade", (response) => {
      below = response.socket;
    });
    socket.once("open", () => {
      settled();
      if (below && !signal.aborted) resolve(overSocket(socket, below));
    });
    if (signal.aborted) stop();
  });
}

function overSocket(socket: WebSocket, below: Socket): Stream {
  const liveness = createLiveness(performance.now());
  let gone = false;
  socket.binaryType = "nodebuffer";
  // The first frames of the gateway must not be missed.
  socket.pause();
  socket.on("close", () => {
    gone = true;
  });
  const binary = { binary: true };
  return {
    listen(hears) {
      socket.on("message", (data, isBinary) => {
        if (isBinary) hears.onBytes(data as Buffer);
        else hears.onText(data.toString());
      });
      below.on("drain", () => hears.onRoom());
      if (gone) return hears.onGone(false);
      socket.on("close", (code) => hears.onGone(code === CLOSE_NORMAL));
      socket.resume();
    },
    send: (frame) => {
      if (!gone) socket.send(JSON.stringify(frame));
    },
    sendBytes: (bytes) => {
      if (!gone) socket.send(bytes, binary);
    },
    congested: () => below.writableLength > CONGESTED_BYTES,
    close() {
      // A socket without a listener is not read yet, and would not notice that the other side closes too.
      socket.resume();
      socket.close(CLOSE_NORMAL);
    },
    check() {
      if (gone) return;
      if (liveness.tick(performance.now(), below.bytesRead) === "ask") socket.ping();
      else socket.terminate();
    },
  };
}

/** The response instead of an upgrade: from the gateway, or from something else at that address. */
async function refusal(response: IncomingMessage): Promise<LinkFailure> {
  let text = "";
  for await (const part of response.setEncoding("utf8")) {
    text += part;
    if (text.length > ANSWER_BYTES) break;
  }
  const { code, message, next_step } = parse(text);
  // Another listener of the same installation responds in the same format, with a certificate of the same CA.
  const own =
    response.headers[LISTENER_HEADER] === gatewayListeners.node &&
    typeof code === "string" &&
    /^[a-z_]{1,64}$/.test(code);
  return new LinkFailure({
    kind: "answer",
    status: response.statusCode ?? 0,
    code: own ? code : undefined,
    excerpt:
      own && typeof message === "string"
        ? message.slice(0, 200)
        : "the server at this address is not the terminal gateway",
    nextStep: own && typeof next_step === "string" ? next_step : undefined,
  });
}

function parse(text: string): Record<string, unknown> {
  try {
    return (JSON.parse(text) ?? {}) as Record<string, unknown>;
  } catch {
    return {};
  }
}
