// An HTTP server on loopback that keeps what it got, for stand-ins of services.

import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { onTestFinished } from "vitest";

export type Got = { method: string; path: string; headers: IncomingHttpHeaders; body: string };
export type Reply = {
  status: number;
  headers?: Record<string, string>;
  body?: string | object;
  /** Of an answer: the connection ends, or nothing happens. */
  instead?: "cut" | "silence";
};
export type StandIn = {
  url: string;
  got: Got[];
  /** Once, instead of what the service would answer. */
  next(reply: Reply): void;
};

export async function standIn(answer: (got: Got) => Reply): Promise<StandIn> {
  const got: Got[] = [];
  const planned: Reply[] = [];
  const server = createServer(async (request, response) => {
    const { method = "", url: path = "", headers } = request;
    const one = { method, path, headers, body: await text(request) };
    got.push(one);
    const { status, headers: sent = {}, body = "", instead } = planned.shift() ?? answer(one);
    if (instead === "cut") return request.socket.destroy();
    if (instead === "silence") return;
    const isText = typeof body === "string";
    response.writeHead(status, { ...(isText ? {} : { "content-type": "application/json" }), ...sent });
    response.end(isText ? body : JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, got, next: (reply) => planned.push(reply) };
}

export const parsed = (body: string): Record<string, unknown> => {
  try {
    return JSON.parse(body);
  } catch {
    return {};
  }
};
