// The client against a real HTTP server that answers as told: with our envelopes, and with what
// proxies make of them.

import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CallError, type Client, codeOf, createClient, fieldProblemsOf, isRetryable } from "../src/client.ts";
import { listAudit } from "../src/endpoints/audit.ts";
import { getMe } from "../src/endpoints/me.ts";
import { createProject, getProject } from "../src/endpoints/projects.ts";
import { revokeToken } from "../src/endpoints/tokens.ts";
import { ApiError } from "../src/errors.ts";

type Answer = { status: number; headers?: Record<string, string>; body?: string };
type Received = { method?: string; url?: string; headers: IncomingMessage["headers"]; body: string };

let server: Server;
let call: Client;
let answer: Answer;
let received: Received;

beforeAll(async () => {
  server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    received = { method: request.method, url: request.url, headers: request.headers, body };
    response.writeHead(answer.status, answer.headers).end(answer.body);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  call = createClient({ baseUrl: `http://127.0.0.1:${port}`, token: "hft_token", orgId: "org-1" });
});
afterAll(() => server.close());

const json = (status: number, body: unknown): Answer => ({
  status,
  headers: { "content-type": "application/json" },
  body: JSON.stringify(body),
});

async function refusal(calling: Promise<unknown>): Promise<CallError> {
  const error = await calling.then(
    (value) => new Error(`answered with ${JSON.stringify(value)}`),
    (reason: unknown) => reason,
  );
  if (error instanceof CallError) return error;
  throw error;
}

describe("what the client sends", () => {
  it("carries token, organization, keys and body", async () => {
    answer = json(201, { id: "1" });
    const body = { slug: "work", name: "Wörk" };
    const created = await call(createProject, { body, idempotencyKey: "key-1", correlationId: "corr-1" });
    expect(created).toEqual({ id: "1" });
    expect(received).toMatchObject({ method: "POST", url: "/v1/projects", body: JSON.stringify(body) });
    expect(received.headers).toMatchObject({
      authorization: "Bearer hft_token",
      "x-org-id": "org-1",
      "content-type": "application/json",
      "idempotency-key": "key-1",
      "x-correlation-id": "corr-1",
    });
  });

  it("SEC-03 encodes params, so that none reaches another route", async () => {
    answer = json(200, {});
    await call(getProject, { params: { project_id: "../orgs?x=1#y z" } });
    expect(received.url).toBe("/v1/projects/..%2Forgs%3Fx%3D1%23y%20z");
  });

  it("drops what is undefined from the query and encodes the rest", async () => {
    answer = json(200, {});
    await call(listAudit, { query: { actor: "a&b=c d", action: undefined, target: undefined, limit: 5 } });
    expect(received.url).toBe("/v1/audit?actor=a%26b%3Dc+d&limit=5");
    await call(listAudit, { query: { action: undefined } });
    expect(received.url).toBe("/v1/audit");
    await call(listAudit, {});
    expect(received).toMatchObject({ url: "/v1/audit", body: "" });
    expect(received.headers["content-type"]).toBeUndefined();
  });
});

describe("what the client understands", () => {
  it("an answer without a body", async () => {
    answer = { status: 204 };
    expect(await call(revokeToken, { params: { token_id: "1" } })).toBeUndefined();
  });

  it("an envelope, as the server gave it", async () => {
    const envelope = new ApiError("name_taken", { details: { slug: "work" } }).envelope("corr-9");
    answer = json(409, envelope);
    const error = await refusal(call(createProject, { body: { slug: "work", name: "Work" } }));
    expect(error).toMatchObject({ status: 409, message: envelope.message, envelope });
  });

  it("OPS-04 a runbook, as an address that can be opened", async () => {
    answer = json(409, new ApiError("terminal_token_mint_failed").envelope("corr-9"));
    const { envelope } = await refusal(call(getMe, {}));
    expect(envelope.runbook).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/runbooks\/terminal_token_mint_failed$/);
  });

  it.for<[string, Answer]>([
    ["an HTML page", { status: 502, headers: { "content-type": "text/html" }, body: "<h1>Bad Gateway</h1>" }],
    ["nothing", { status: 502 }],
    ["JSON of another form", json(502, { error: "upstream" })],
    ["an envelope with an unknown code", json(502, { ...new ApiError("conflict").envelope("x"), code: "E1" })],
  ])("an error of a proxy that sends %s", async ([, sent]) => {
    answer = { ...sent, headers: { ...sent.headers, "x-correlation-id": "corr-7" } };
    const error = await refusal(call(getMe, {}));
    expect(error.status).toBe(502);
    expect(error.envelope).toMatchObject({ code: "internal_error", correlation_id: "corr-7" });
    expect(error.message).toContain("502");
    expect(error.message).toContain("proxy");
  });

  it("a page that a proxy sends with 200, as an error too", async () => {
    answer = { status: 200, headers: { "content-type": "text/html" }, body: "<form>Sign in to the hotel</form>" };
    const error = await refusal(call(getMe, {}));
    expect(error.status).toBe(200);
    expect(error.envelope.correlation_id).toBe("unknown");
    expect(error.message).toContain("proxy");
  });
});

describe("a refusal", () => {
  const refused = (error: ApiError) => new CallError(error.status, error.envelope("c-1"));

  it("has a code and says whether to try again; anything else that was thrown has neither", () => {
    expect(codeOf(refused(new ApiError("not_found")))).toBe("not_found");
    expect(isRetryable(refused(new ApiError("not_found")))).toBe(false);
    expect(isRetryable(refused(new ApiError("database_unavailable")))).toBe(true);
    expect(codeOf(new TypeError("fetch failed"))).toBeUndefined();
    expect(isRetryable(new TypeError("fetch failed"))).toBe(false);
  });

  it("names the fields that were not accepted, and leaves out what has another form", () => {
    const problem = { field: "body.name", problem: "Too long" };
    const envelopeWith = (fields: unknown) =>
      new ApiError("invalid_request", { details: { fields } }).envelope("c-1");
    expect(fieldProblemsOf(envelopeWith([problem, "nonsense", null, { field: "x" }]))).toEqual([problem]);
    expect(fieldProblemsOf(envelopeWith("nonsense"))).toEqual([]);
  });
});
