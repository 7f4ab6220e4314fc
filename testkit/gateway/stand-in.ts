// A gateway as browsers see it, whose every frame is the test's: for what a real one does rarely or never.

import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { gatewayListeners, LISTENER_HEADER } from "@holdfast/contracts/headers";
import {
  type ClientFrame,
  readClientFrame,
  type ServerFrame,
  TERMINAL_PATH,
  TERMINAL_PROTOCOL,
  TOKEN_PROTOCOL,
  WRITER_PROTOCOL,
} from "@holdfast/contracts/terminal/frames";
import { type WebSocket, WebSocketServer } from "ws";

/** Shorter than a test may take, so that it says what it missed. */
const PATIENCE_MS = 30_000;

/** The gateway's end of one browser's terminal. */
export type StandInClient = {
  /** As it came with the subprotocols. */
  token: string;
  writer: string;
  frames: ClientFrame[];
  /** Input, in the pieces that it came in. */
  pieces: Buffer[];
  /** All of it. */
  typed(): string;
  say(frame: ServerFrame): void;
  show(output: string | Buffer): void;
  /** Resolves when it holds, now or after something more has arrived; tells what came instead when it never does. */
  until(holds: (client: StandInClient) => boolean): Promise<void>;
  /** Stays connected, and answers nothing more. */
  fallSilent(): void;
  hangUp(): void;
  closed: Promise<unknown>;
};

export type StandIn = {
  /** As announced to the api. */
  url: string;
  nextClient(): Promise<StandInClient>;
  /** `refused`: answers, but upgrades nothing. `silent`: takes connections, and answers none of them. */
  behave(how: "open" | "refused" | "silent"): void;
  stop(): Promise<void>;
};

export async function startStandIn(port = 0): Promise<StandIn> {
  let behaviour: Parameters<StandIn["behave"]>[0] = "open";
  const arrived: StandInClient[] = [];
  const expected: ((client: StandInClient) => void)[] = [];
  const server = createServer((request, response) => {
    if (behaviour === "silent") return;
    const healthy = request.url === "/healthz";
    response
      .writeHead(healthy ? 200 : 404, {
        "access-control-allow-origin": "*",
        "access-control-expose-headers": LISTENER_HEADER,
        [LISTENER_HEADER]: gatewayListeners.public,
      })
      .end("{}");
  });
  const sockets = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    handleProtocols: () => TERMINAL_PROTOCOL,
  });
  server.on("upgrade", (request, socket, head) => {
    // A browser that has gone meanwhile.
    socket.on("error", () => socket.destroy());
    if (behaviour === "silent") return;
    if (behaviour === "refused") return void socket.end("HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n");
    sockets.handleUpgrade(request, socket, head, (opened) => {
      const offered = String(request.headers["sec-websocket-protocol"]).split(/, */);
      const behind = (name: string) => offered.find((each) => each.startsWith(name))?.slice(name.length) ?? "";
      const client = clientOf(opened, { token: behind(TOKEN_PROTOCOL), writer: behind(WRITER_PROTOCOL) });
      const waiting = expected.shift();
      if (waiting) waiting(client);
      else arrived.push(client);
    });
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}${TERMINAL_PATH}`,
    nextClient() {
      const client = arrived.shift();
      return client ? Promise.resolve(client) : new Promise((resolve) => expected.push(resolve));
    },
    behave(how) {
      behaviour = how;
    },
    async stop() {
      for (const socket of sockets.clients) socket.terminate();
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

function clientOf(socket: WebSocket, offered: Pick<StandInClient, "token" | "writer">): StandInClient {
  const waiting = new Set<() => void>();
  let silent = false;
  const client: StandInClient = {
    ...offered,
    frames: [],
    pieces: [],
    typed: () => Buffer.concat(client.pieces).toString(),
    say: (frame) => socket.send(JSON.stringify(frame)),
    show: (output) => socket.send(Buffer.from(output)),
    until: (holds) =>
      new Promise((resolve, reject) => {
        const timeout = setTimeout(() => {
          waiting.delete(look);
          reject(new Error(`came instead: ${JSON.stringify(client.frames)} ${Buffer.concat(client.pieces)}`));
        }, PATIENCE_MS);
        const look = () => {
          if (!holds(client)) return;
          clearTimeout(timeout);
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      }),
    fallSilent() {
      silent = true;
    },
    hangUp: () => socket.terminate(),
    closed: once(socket, "close"),
  };
  socket.on("message", (data: Buffer, isBinary) => {
    const frame = isBinary ? undefined : readClientFrame(data.toString());
    if (isBinary) client.pieces.push(data);
    else if (frame?.type === "ping" && !silent) client.say({ type: "pong" });
    if (frame) client.frames.push(frame);
    for (const look of waiting) look();
  });
  return client;
}
