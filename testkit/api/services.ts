// A gateway as the internal listener sees it: enrolls with the service token, and sends requests with its certificate.

import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { type AgentOptions, request as send } from "node:https";
import { createInterface } from "node:readline";
import { type Endpoint, pathOf } from "@holdfast/contracts/endpoint";
import {
  announceGateway,
  enrollService,
  followServiceNews,
  type ServiceNews,
} from "@holdfast/contracts/internal/endpoints";
import { uuidv7 } from "@holdfast/kit/uuid";
import { proofOfRequest } from "@holdfast/service/service-proof";
import { atEnd } from "../lifetime/at-end.ts";
import type { TestApi } from "./api.ts";
import { type Answer, makeKeyRequest, openClient, type TestClient } from "./nodes.ts";

export const SERVICE_TOKEN = `hfv_${"t".repeat(43)}`;
export const TERMINAL_URL = "ws://127.0.0.1:3002/v1/terminal";
export const NODE_TERMINAL_URL = "https://127.0.0.1:18443";

export type RequestOptions = {
  params?: Record<string, string>;
  body?: Record<string, unknown>;
  correlationId?: string;
};

export type TestGateway = {
  id: string;
  tls: AgentOptions;
  client: TestClient;
  ask(endpoint: Endpoint, options?: RequestOptions): Promise<Answer>;
  announce(changes?: Record<string, unknown>): Promise<Answer>;
  follow(): Promise<Following>;
};

/** A request for a service certificate, with a proof made from `token`. */
export async function enrollment(changes: Record<string, unknown> = {}, token = SERVICE_TOKEN) {
  const { key, csr } = await makeKeyRequest();
  const request = {
    service: "gateway",
    instance_id: uuidv7(),
    csr,
    names: ["localhost", "127.0.0.1"],
    nonce: randomBytes(16).toString("base64url"),
    sent_at: new Date().toISOString(),
    ...changes,
  };
  return { key, request, body: { ...request, mac: proofOfRequest(token, request) } };
}

export async function enrollGateway(
  api: Pick<TestApi, "internalUrl">,
  changes: { instance_id?: string } = {},
): Promise<TestGateway> {
  const { key, request, body } = await enrollment(changes);
  const first = openClient(api.internalUrl, { rejectUnauthorized: false });
  const { status, body: answer } = await first.ask({ method: "POST", path: enrollService.path, body });
  if (status !== 200) throw new Error(`not enrolled: ${JSON.stringify(answer)}`);
  first.close();
  const { certificate, trust_bundle } = answer as { certificate: string; trust_bundle: string[] };
  const tls = { cert: certificate, key, ca: trust_bundle };
  const client = openClient(api.internalUrl, { ...tls, maxSockets: 8 });
  const id = request.instance_id;
  const ask: TestGateway["ask"] = (endpoint, { params, body: sent, correlationId } = {}) =>
    client.ask({
      method: endpoint.method,
      path: pathOf(endpoint, params),
      ...(endpoint.body ? { body: { gateway_id: id, ...sent } } : {}),
      ...(correlationId ? { headers: { "x-correlation-id": correlationId } } : {}),
    });
  return {
    id,
    tls,
    client,
    ask,
    announce: (changes) =>
      client.ask({
        method: "POST",
        path: announceGateway.path,
        body: {
          instance_id: id,
          terminal_url: TERMINAL_URL,
          node_url: NODE_TERMINAL_URL,
          sessions: 0,
          ...changes,
        },
      }),
    follow: () => followNews(api.internalUrl, tls),
  };
}

export type Following = {
  headers: IncomingMessage["headers"];
  /** The next line that this is true for; those before it are passed over. */
  next(wanted: (line: ServiceNews) => boolean): Promise<ServiceNews>;
  ended: Promise<void>;
  stop(): void;
};

async function followNews(baseUrl: string, tls: AgentOptions): Promise<Following> {
  const outgoing = send(`${baseUrl}${followServiceNews.path}`, { ...tls, agent: false });
  outgoing.end();
  const [response] = (await once(outgoing, "response")) as [IncomingMessage];
  if (response.statusCode !== 200) throw new Error(`news answered ${response.statusCode}`);
  const lines = createInterface({ input: response })[Symbol.asyncIterator]();
  const ended = new Promise<void>((resolve) => response.once("close", resolve));
  response.on("error", () => undefined);
  outgoing.on("error", () => undefined);
  atEnd(() => outgoing.destroy());
  return {
    headers: response.headers,
    async next(wanted) {
      for (;;) {
        const { value, done } = await lines.next();
        if (done) throw new Error("the news ended");
        const line = JSON.parse(value) as ServiceNews;
        if (wanted(line)) return line;
      }
    },
    ended,
    stop: () => outgoing.destroy(),
  };
}
