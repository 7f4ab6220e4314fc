// Connectors on an agent, dispatched by a stand-in gateway over a real WebSocket, with a service on loopback.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Reply, standIn } from "../../workflows/test/connectors/server.ts";
import { startTestExecutionAgent } from "./support/execution-agent.ts";
import { startStandInGateway } from "./support/stand-in-gateway.ts";

const SECRET = "s3cret-Value/of+an-agent";
const loopback = { HOLDFAST_EXECUTION_CONNECTOR_NETWORKS: "127.0.0.1" };
const served = { connectors: ["echo", "http", "github"], env: loopback };

async function dispatched(
  payload: { connectorId: string; actionId: string; input?: unknown },
  options: { connectors?: string[]; env?: Record<string, string>; secret?: string } = served,
) {
  const { secret, ...agentOptions } = options;
  const gateway = await startStandInGateway();
  const agent = await startTestExecutionAgent(gateway, agentOptions);
  const socket = await gateway.socket();
  const order = gateway.order({ kind: "connector.action", payload, ...(secret === undefined ? {} : { secret }) });
  socket.send(order);
  const { status, error, output } = await gateway.result(order.requestId);
  return { gateway, agent, socket, order, result: { status, error, output } };
}
const service = (reply: Reply = { status: 200, body: { fine: true } }) => standIn(() => reply);

describe("a connector on an agent", () => {
  it("EXEC-01 FLOW-02 does what it does in the worker, with the same idempotency key for each attempt", async () => {
    const server = await service();
    const input = { method: "POST", url: server.url, json: { a: 1 } };
    const { result, order } = await dispatched({ connectorId: "http", actionId: "request", input });
    expect(result).toMatchObject({ status: "succeeded", output: { status: 200, body: { fine: true } } });
    const key = String(server.got[0]?.headers["idempotency-key"]);
    expect(key.startsWith(order.requestId.replace(/:\d+$/, ""))).toBe(true);
    expect(server.got).toMatchObject([{ method: "POST", body: '{"a":1}' }]);
  });

  it("SEC-02 gives the secret to the service, and to no result, journal or log", async () => {
    const server = await standIn(({ headers }) => ({ status: 200, body: { seen: headers.authorization } }));
    const { result, agent, gateway } = await dispatched(
      { connectorId: "http", actionId: "get", input: { url: server.url } },
      { ...served, secret: SECRET },
    );
    expect(server.got[0]?.headers.authorization).toBe(`Bearer ${SECRET}`);
    expect(result.status).toBe("succeeded");
    await agent.stop();
    const journals = ["journal.a", "journal.b"].map((name) =>
      readFileSync(join(agent.directory, "executions", gateway.agentId, name), "latin1"),
    );
    for (const text of [JSON.stringify(result), agent.logged(), ...journals]) expect(text).not.toContain(SECRET);
  });

  it("EXEC-03 SEC-04 is served only if the owner of the host lists it", async () => {
    const server = await service();
    const { result, socket } = await dispatched(
      { connectorId: "http", actionId: "get", input: { url: server.url } },
      { env: loopback },
    );
    expect(socket.hello?.capabilities.connectors).toEqual(["echo"]);
    expect(result).toMatchObject({ status: "failed", error: expect.stringContaining('no connector "http"') });
    expect(server.got).toEqual([]);
  });

  it("SEC-04 reaches loopback and metadata services only if the owner of the host lists them", async () => {
    const server = await service();
    for (const url of [server.url, "http://169.254.169.254/latest/meta-data/"]) {
      const { result } = await dispatched(
        { connectorId: "http", actionId: "get", input: { url } },
        { connectors: ["http"] },
      );
      expect(result).toMatchObject({
        status: "failed",
        output: { failure: { code: "address_refused", outcomeKnown: true } },
      });
    }
    expect(server.got).toEqual([]);
  });

  it("FLOW-04 reports failures so that the workflow knows whether a retry may follow", async () => {
    const server = await service({ status: 429, headers: { "retry-after": "7" } });
    const limited = await dispatched({ connectorId: "http", actionId: "get", input: { url: server.url } });
    expect(limited.result).toMatchObject({
      status: "failed",
      output: { failure: { code: "rate_limited", outcomeKnown: true, retryAfterMs: 7_000 } },
    });
    const wrong = await dispatched({ connectorId: "github", actionId: "issue.create", input: { repo: "x" } });
    expect(wrong.result).toMatchObject({ status: "failed", output: { failure: { code: "input_invalid" } } });
    const unknown = await dispatched({ connectorId: "github", actionId: "toString" });
    expect(unknown.result.error).toContain("has no action");
  });
});
