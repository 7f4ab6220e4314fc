// A receiver of webhooks, as it is outside: keeps what it gets, and answers as the test wants.

import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { atEnd } from "../lifetime/at-end.ts";

type Received = { url: string; headers: IncomingHttpHeaders; body: string };

export type WebhookServer = {
  url: string;
  port: number;
  received: Received[];
  /** How the next requests are answered. */
  answer: (response: ServerResponse) => void;
};

export async function startWebhookServer(): Promise<WebhookServer> {
  const server: WebhookServer = {
    url: "",
    port: 0,
    received: [],
    answer: (response) => response.end("thank you"),
  };
  const http = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks).toString();
      server.received.push({ url: request.url ?? "", headers: request.headers, body });
      server.answer(response);
    });
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  atEnd(() => http.closeAllConnections());
  atEnd(() => http.close());
  server.port = (http.address() as AddressInfo).port;
  server.url = `http://127.0.0.1:${server.port}/hooks/secret-path`;
  return server;
}
