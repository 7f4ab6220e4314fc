import { describe, expect, it } from "vitest";
import { type Reply, standIn } from "../server.ts";
import { codeOf, connectorSuite, run, SECRET, type Service, statusSuite } from "../suite.ts";

/** A service that returns what it got, as many test services do: the secret, too. */
async function open(): Promise<Service> {
  const server = await standIn(({ headers, body }) => ({
    status: 200,
    headers: {
      "content-type": "application/json",
      "x-seen": String(headers["authorization"]),
      connection: "close",
      date: "x",
    },
    body: JSON.stringify({ got: body }),
  }));
  return {
    arrived: () => server.got.length,
    transcript: () => JSON.stringify(server.got),
    ...{ input: { url: `${server.url}/hook` }, secret: SECRET, next: server.next },
  };
}
const headers = {
  "content-type": "application/json",
  "x-seen": "Bearer [redacted]",
  connection: "close",
  date: "x",
  "transfer-encoding": "chunked",
};

connectorSuite("http", open, {
  get: { input: {}, output: { status: 200, headers, body: { got: "" } }, lineField: "url" },
  request: {
    input: { method: "POST", json: { a: 1 }, headers: { "X-Own": "yes" } },
    output: { status: 200, headers, body: { got: '{"a":1}' } },
    lineField: "url",
  },
});
statusSuite("http", open, { action: "get", input: {} });

describe("the connector http", () => {
  const served = async (input: object, secret?: string, reply: Reply = { status: 200, body: "fine" }) => {
    const server = await standIn(() => reply);
    const outcome = await run({
      connector: "http",
      action: "request",
      input: { method: "POST", url: server.url, ...input },
      secret,
    });
    return { outcome, got: server.got[0] };
  };

  it("FLOW-02 sends the idempotency key, headers and text", async () => {
    const { got } = await served({ text: "hello", headers: { "X-Own": "yes" } });
    expect(got).toMatchObject({
      method: "POST",
      body: "hello",
      headers: { "idempotency-key": "run:step:1", "x-own": "yes" },
    });
    expect(got?.headers["authorization"]).toBeUndefined();
  });

  it("SEC-02 sends the secret as a bearer token, with a user, or in a header of its own", async () => {
    expect((await served({}, SECRET)).got?.headers["authorization"]).toBe(`Bearer ${SECRET}`);
    const { got } = await served({ auth: { scheme: "basic", user: "bot" } }, SECRET);
    expect(got?.headers["authorization"]).toBe(`Basic ${btoa(`bot:${SECRET}`)}`);
    const own = await served({ auth: { scheme: "header", header: "X-Api-Key" } }, SECRET);
    expect([own.got?.headers["x-api-key"], own.got?.headers["authorization"]]).toEqual([SECRET, undefined]);
  });

  it("FLOW-01 returns any status where the workflow decides by it", async () => {
    const { outcome } = await served({ anyStatus: true }, undefined, { status: 418, body: "teapot" });
    expect(outcome).toMatchObject({ output: { status: 418, body: "teapot" } });
  });

  it.for([
    { Authorization: "x" },
    { Host: "x" },
    { "Content-Length": "1" },
    { "a b": "x" },
    { "X-A": "b\r\nX-Evil: 1" },
  ])("SEC-04 does not take the header %j", async (own) =>
    expect(codeOf((await served({ headers: own })).outcome)).toBe("input_invalid"),
  );

  it("SEC-02 SEC-04 a redirect takes neither the request nor the secret to another host", async () => {
    const other = await standIn(() => ({ status: 200 }));
    for (const status of [301, 302, 303, 307, 308]) {
      const { outcome } = await served({ anyStatus: status === 308 }, SECRET, {
        status,
        headers: { location: `${other.url}/steal` },
      });
      expect(codeOf(outcome)).toBe(status === 308 ? "succeeded" : "redirected");
    }
    expect(other.got).toEqual([]);
  });

  it("FLOW-01 sends only one of text and json", async () => {
    expect(codeOf((await served({ text: "a", json: 1 })).outcome)).toBe("input_invalid");
  });
});
