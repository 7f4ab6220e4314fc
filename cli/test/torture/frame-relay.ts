// A relay between agents and gateways that knows where frames begin and end. It loses a frame with everything after it, as a
// connection does that breaks, half of the time behind the frame; and it repeats frames, at once or after later ones.

import { createServer, type IncomingMessage, STATUS_CODES } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import WebSocket, { type RawData, WebSocketServer } from "ws";

export type FrameRelay = {
  port: number;
  broken(): number;
  repeated(): number;
  /** Lets everything pass as it is from now on. */
  calm(): void;
  stop(): Promise<void>;
};

/** Of all frames, about one in so many. */
const BROKEN_ONE_IN = 60;
const REPEATED_ONE_IN = 12;

export async function startFrameRelay(options: { target: number; random: () => number }): Promise<FrameRelay> {
  const { target, random } = options;
  const sockets = new Set<WebSocket>();
  const accepting = new WebSocketServer({ noServer: true, perMessageDeflate: false });
  let [broken, repeated, calm] = [0, 0, false];
  const oneIn = (number: number) => !calm && random() * number < 1;

  const join = (near: WebSocket, far: WebSocket) => {
    const end = () => {
      near.terminate();
      far.terminate();
    };
    const pass = (from: WebSocket, to: WebSocket) => {
      let later: string | undefined;
      from.on("message", (data: RawData) => {
        const frame = data.toString();
        if (oneIn(BROKEN_ONE_IN)) {
          broken += 1;
          return random() < 0.5 ? to.send(frame, end) : end();
        }
        to.send(frame);
        if (later !== undefined) to.send(later);
        later = undefined;
        if (!oneIn(REPEATED_ONE_IN)) return;
        repeated += 1;
        if (random() < 0.5) to.send(frame);
        else later = frame;
      });
      from.on("close", (code, reason) => (code >= 3000 || code === 1000 ? to.close(code, reason) : end()));
    };
    pass(near, far);
    pass(far, near);
  };

  const upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on("error", () => socket.destroy());
    const { authorization = "" } = request.headers;
    const far = watch(new WebSocket(`ws://127.0.0.1:${target}${request.url}`, { headers: { authorization } }));
    far.once("unexpected-response", (_request, { statusCode = 502 }) => {
      socket.end(`HTTP/1.1 ${statusCode} ${STATUS_CODES[statusCode]}\r\nConnection: close\r\n\r\n`);
      far.terminate();
    });
    far.once("close", () => socket.destroy());
    far.once("open", () => {
      far.pause();
      far.removeAllListeners("close");
      watch(far);
      accepting.handleUpgrade(request, socket, head, (near) => {
        join(watch(near), far);
        far.resume();
      });
    });
  };
  const watch = (socket: WebSocket): WebSocket => {
    sockets.add(socket);
    return socket.on("error", () => undefined).on("close", () => sockets.delete(socket));
  };

  const server = createServer((_request, response) => response.writeHead(426).end());
  server.on("upgrade", upgrade);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    broken: () => broken,
    repeated: () => repeated,
    calm: () => {
      calm = true;
    },
    stop: async () => {
      for (const socket of sockets) socket.terminate();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
