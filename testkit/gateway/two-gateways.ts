// Two real gateways over one stand-in api and a real Redis, and one enrolled node, for a whole test file.

import { beforeAll, expect } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import { startTestRedis, type TestRedis } from "../redis/redis.ts";
import { type StandInApi, startStandInApi } from "./api.ts";
import {
  certificateFor,
  comeUp,
  connectClient,
  connectNode,
  dialNode,
  type NodeCertificate,
  type OpenTerminal,
  startTestGateway,
  type TestClient,
  type TestGateway,
  type TestNodeStream,
} from "./gateway.ts";

export type TwoGateways = {
  redis: TestRedis;
  api: StandInApi;
  a: TestGateway;
  b: TestGateway;
  node: NodeCertificate;
  startGateway(env?: Record<string, string>): Promise<TestGateway>;
  /** A client of a new terminal; resolves once the node was asked to open it. */
  begin(gateway: TestGateway): Promise<{ client: TestClient; sessionId: string; correlationId: string }>;
  /** A terminal that is ready. */
  open(at: { client: TestGateway; stream: TestGateway }): Promise<OpenTerminal>;
  attach(gateway: TestGateway, sessionId: string): Promise<TestClient>;
  /** As an agent does: until the gateway takes the stream. */
  reconnect(gateway: TestGateway, sessionId: string): Promise<TestNodeStream>;
};

/** Its fields may be read from the first test on, unless there is no Redis. */
export function useTwoGateways(): TwoGateways {
  const two = {
    startGateway: (env) => startTestGateway(two.api, { HOLDFAST_REDIS_URL: two.redis.url, ...env }),
    async begin(gateway) {
      const { token, grant } = two.api.grant({ node_id: two.node.id });
      const asked = two.api.whenOpened(grant.session_id);
      const client = await connectClient(gateway, token);
      await asked;
      return { client, sessionId: grant.session_id, correlationId: grant.correlation_id };
    },
    async open(at) {
      const begun = await two.begin(at.client);
      const stream = await connectNode(at.stream, begun.sessionId, two.node);
      await comeUp(stream);
      await begun.client.next("ready");
      return { ...begun, stream };
    },
    attach(gateway, sessionId) {
      const granted = { session_id: sessionId, node_id: two.node.id, purpose: "attach", offset: 0 } as const;
      return connectClient(gateway, two.api.grant(granted).token);
    },
    async reconnect(gateway, sessionId) {
      for (;;) {
        const dialled = await dialNode(gateway, { nodeId: two.node.id, sessionId }, two.node);
        if ("peer" in dialled) return dialled.peer;
        expect(dialled.refused.status, dialled.refused.body).toBe(503);
      }
    },
  } as TwoGateways;
  beforeAll(async () => {
    if (lacks("redis")) return;
    two.redis = await startTestRedis();
    two.api = await startStandInApi();
    [two.a, two.b] = await Promise.all([two.startGateway(), two.startGateway()]);
    two.node = await certificateFor(two.api.authority);
  });
  return two;
}
