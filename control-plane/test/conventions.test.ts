// What holds for every endpoint: errors, correlation ids, pages, idempotency, health, headers.

import { request as rawRequest } from "node:http";
import { createProject, listProjects } from "@holdfast/contracts/endpoints/projects";
import { createToken } from "@holdfast/contracts/endpoints/tokens";
import { ErrorEnvelope } from "@holdfast/contracts/errors";
import { beforeAll, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg, tokenFor } from "../../testkit/api/api.ts";
import { enrollTestNode, sendHeartbeatFrom, type TestNode } from "../../testkit/api/nodes.ts";
import { openRoles, setReachable } from "../../testkit/database/database.ts";

let api: TestApi;
let org: TestOrg;
let owner: string;

beforeAll(async () => {
  api = await startTestApi({ env: { HOLDFAST_BODY_LIMIT_BYTES: "4096" } });
  org = await createOrg(api, "acme");
  owner = await tokenFor(api, org, "owner");
});

async function send(path: string, init: RequestInit & { token?: string } = {}) {
  const response = await fetch(api.url + path, {
    ...init,
    headers: { authorization: `Bearer ${init.token ?? owner}`, ...(init.headers as Record<string, string>) },
  });
  const text = await response.text();
  return { response, text, json: () => JSON.parse(text) };
}

const post = (path: string, body: string, headers: Record<string, string> = {}) =>
  send(path, { method: "POST", body, headers: { "content-type": "application/json", ...headers } });

describe("errors", () => {
  const cases: [string, number, string, () => ReturnType<typeof send>][] = [
    ["malformed JSON", 400, "malformed_json", () => post("/v1/projects", '{"slug":')],
    ["an empty body", 400, "malformed_json", () => post("/v1/projects", "")],
    ["JSON that poisons prototypes", 400, "malformed_json", () => post("/v1/projects", '{"__proto__":{"a":1}}')],
    ["a wrong type", 400, "invalid_request", () => post("/v1/projects", '{"slug":7,"name":"x"}')],
    ["a missing field", 400, "invalid_request", () => post("/v1/projects", '{"name":"x"}')],
    ["a body that is a list", 400, "invalid_request", () => post("/v1/projects", "[]")],
    ["an unknown field", 400, "unknown_field", () => post("/v1/projects", '{"slug":"ab","name":"x","colour":1}')],
    ["an unknown query field", 400, "unknown_field", () => send("/v1/projects?colour=red")],
    ["a query field given twice", 400, "invalid_request", () => send("/v1/projects?limit=1&limit=2")],
    ["a limit out of range", 400, "invalid_request", () => send("/v1/projects?limit=1000")],
    ["a cursor that is none", 400, "invalid_cursor", () => send("/v1/projects?cursor=zzz")],
    ["a body over the limit", 413, "body_too_large", () => post("/v1/projects", `{"name":"${"x".repeat(5000)}"}`)],
    [
      "a form instead of JSON",
      415,
      "unsupported_media_type",
      () =>
        send("/v1/projects", {
          method: "POST",
          body: "a=b",
          headers: { "content-type": "application/x-www-form-urlencoded" },
        }),
    ],
    ["an unknown id", 404, "not_found", () => send("/v1/projects/01a1e13c-bc3d-71c5-9b58-aada3c2346d4")],
    ["an id that is none", 400, "invalid_request", () => send("/v1/projects/7")],
    ["an unknown path", 404, "route_not_found", () => send("/v1/nothing")],
    ["a method the path does not take", 405, "method_not_allowed", () => send("/v1/projects", { method: "PUT" })],
    ["no credentials", 401, "unauthenticated", () => send("/v1/me", { headers: { authorization: "" } })],
    ["a wrong token", 401, "unauthenticated", () => send("/v1/me", { token: "hft_wrong" })],
    ["another kind of secret as token", 401, "unauthenticated", () => send("/v1/me", { token: "hfs_wrong" })],
    ["a time that no calendar has", 400, "invalid_request", () => send("/v1/audit?since=0000-01-01T00:00:00Z")],
    [
      "a name that cannot be seen",
      400,
      "invalid_request",
      () => post("/v1/projects", JSON.stringify({ slug: "ab", name: "\u200b" })),
    ],
    [
      "a name that turns the line around",
      400,
      "invalid_request",
      () => post("/v1/projects", JSON.stringify({ slug: "ab", name: "a\u202eb" })),
    ],
    ["a broken URL", 400, "invalid_request", () => send("/v1/projects/%E0%A4%A")],
    [
      "an idempotency key with spaces",
      400,
      "invalid_request",
      () => post("/v1/projects", '{"slug":"ab","name":"x"}', { "idempotency-key": "a b" }),
    ],
  ];

  it.each(cases)("SEC-03 answers %s with %i %s", async (_what, status, code, act) => {
    const { response, json } = await act();
    expect(response.status).toBe(status);
    const envelope = ErrorEnvelope.parse(json());
    expect(envelope.code).toBe(code);
    expect(envelope.correlation_id).toBe(response.headers.get("x-correlation-id"));
    expect(envelope.next_step).not.toBe("");
    expect(response.headers.get("content-security-policy")).toContain("default-src 'none'");
  });

  it("SEC-03 names the wrong field and never repeats its value", async () => {
    const { json, text } = await post("/v1/projects", '{"slug":"hunter2-IS-SECRET!","name":"x"}');
    expect(json().details.fields).toEqual([{ field: "body.slug", problem: expect.any(String) }]);
    expect(text).not.toContain("hunter2");
  });

  it("SEC-03 tells the methods a path does take", async () => {
    const { response } = await send("/v1/projects", { method: "DELETE" });
    expect(response.headers.get("allow")).toBe("GET, POST");
  });

  it("SEC-03 answers an internal failure without its inside, and logs it under the correlation id", async () => {
    const broken = await startTestApi();
    const { superuser } = openRoles(broken.database);
    await superuser`ALTER TABLE projects RENAME COLUMN name TO renamed`;
    const { id } = await createOrg(broken, "acme").catch(() => ({ id: "" }));
    expect(id).toBe("");
    const response = await fetch(`${broken.url}/v1/projects`, {
      headers: { authorization: `Bearer ${broken.operatorToken}`, "x-correlation-id": "find-me-7" },
    });
    const text = await response.text();
    expect(response.status).toBe(500);
    expect(ErrorEnvelope.parse(JSON.parse(text)).code).toBe("internal_error");
    expect(text).not.toContain("column");
    expect(broken.logged()).toMatch(/"correlation_id":"find-me-7".*"msg":"request failed/);
  });

  it("OPS-02 says that the database is away, and is ready again when it is back", async () => {
    const away = await startTestApi();
    await setReachable(away.database, false);
    const refused = await fetch(`${away.url}/v1/me`, { headers: { authorization: "Bearer hft_any" } });
    expect(ErrorEnvelope.parse(await refused.json())).toMatchObject({
      code: "database_unavailable",
      retryable: true,
    });
    expect((await fetch(`${away.url}/readyz`)).status).toBe(503);
    expect((await fetch(`${away.url}/healthz`)).status).toBe(200);
    await setReachable(away.database, true);
    await expect.poll(async () => (await fetch(`${away.url}/readyz`)).status).toBe(200);
  });
});

describe("correlation ids", () => {
  it("AUDIT-03 takes over a well-formed id, returns it, logs it and stores it", async () => {
    const id = "ticket-4711";
    const created = await post("/v1/projects", '{"slug":"traced","name":"Traced"}', { "x-correlation-id": id });
    expect(created.response.status).toBe(201);
    expect(created.response.headers.get("x-correlation-id")).toBe(id);
    const audit = await send(`/v1/audit?correlation_id=${id}`);
    expect(audit.json().items.map((event: { action: string }) => event.action)).toEqual(["project.create"]);
    const lines = api
      .logged()
      .split("\n")
      .filter((line) => line.includes(`"correlation_id":"${id}"`));
    expect(lines.some((line) => line.includes('"msg":"request"'))).toBe(true);
    const auditLine = lines.find((line) => line.includes('"msg":"audit"'));
    expect(JSON.parse(auditLine ?? "{}").dedupe_key_hash).toMatch(/^[0-9a-f]{16}$/);
  });

  it.each(["", "with space", "x".repeat(65), "a;b"])("AUDIT-03 makes its own for %j", async (offered) => {
    const { response } = await send("/v1/me", { headers: { "x-correlation-id": offered } });
    expect(response.headers.get("x-correlation-id")).toMatch(/^[0-9a-f-]{36}$/);
  });

  it("AUDIT-03 logs the route and never the query string", async () => {
    await send("/v1/audit?actor=canary-in-query");
    expect(api.logged()).not.toContain("canary-in-query");
    expect(api.logged()).toContain('"route":"/v1/audit"');
  });
});

describe("pages", () => {
  it("SEC-01 walks a listing by cursor without gaps or repetitions", async () => {
    const client = api.as(await tokenFor(api, await createOrg(api, "pages"), "owner"));
    const made = ["default"];
    for (let n = 0; n < 7; n += 1) {
      await client(createProject, { body: { slug: `p-${n}`, name: `P ${n}` } });
      made.unshift(`p-${n}`);
    }
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await client(listProjects, { query: { limit: 3, cursor } });
      seen.push(...page.items.map((project) => project.slug));
      cursor = page.next_cursor ?? undefined;
    } while (cursor);
    expect(seen).toEqual(made);
  });

  it("SEC-01 refuses a cursor of another listing", async () => {
    const client = api.as(owner);
    await client(createProject, { body: { slug: "one-more", name: "One more" } });
    const { next_cursor } = await client(listProjects, { query: { limit: 1 } });
    const { json } = await send(`/v1/audit?cursor=${next_cursor}`);
    expect(json().code).toBe("invalid_cursor");
  });
});

describe("idempotency keys", () => {
  async function enrolled(hostname: string): Promise<TestNode> {
    const node = await enrollTestNode(api, org.id, { hostname });
    await sendHeartbeatFrom(node);
    return node;
  }

  const body = '{"slug":"once","name":"Once"}';

  it("OPS-02 gives the same answer for the same key and creates once", async () => {
    const first = await post("/v1/projects", body, { "idempotency-key": "k-1" });
    const again = await post("/v1/projects", body, { "idempotency-key": "k-1" });
    expect(first.response.status).toBe(201);
    expect(again.response.status).toBe(201);
    expect(again.text).toBe(first.text);
    expect(first.response.headers.get("idempotency-replayed")).toBeNull();
    expect(again.response.headers.get("idempotency-replayed")).toBe("true");
  });

  it("OPS-02 refuses the key for another request", async () => {
    const other = await post("/v1/projects", '{"slug":"other","name":"Other"}', { "idempotency-key": "k-1" });
    expect(other.json().code).toBe("idempotency_key_reused");
    const elsewhere = await post("/v1/tokens", '{"name":"x"}', { "idempotency-key": "k-1" });
    expect(elsewhere.json().code).toBe("idempotency_key_reused");
  });

  it("OPS-02 refuses the key for the same body at another path, and never returns the other resource", async () => {
    const [one, other] = [await enrolled("key-one"), await enrolled("key-other")];
    const run = (node: TestNode) =>
      post(`/v1/nodes/${node.id}/tasks`, '{"type":"diag.health_probe"}', { "idempotency-key": "k-path" });
    const first = await run(one);
    expect(first.json()).toMatchObject({ node_id: one.id });
    const elsewhere = await run(other);
    expect([elsewhere.response.status, elsewhere.json().code]).toEqual([409, "idempotency_key_reused"]);
    const again = await run(one);
    expect(again.text).toBe(first.text);
  });

  it("OPS-02 creates once when the same key comes many times at once", async () => {
    const racing = JSON.stringify({ slug: "raced", name: "Raced" });
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => post("/v1/projects", racing, { "idempotency-key": "k-race" })),
    );
    expect(new Set(answers.map(({ response }) => response.status))).toEqual(new Set([201]));
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
  });

  it("OPS-02 leaves the key unused when the create fails", async () => {
    const taken = await post("/v1/projects", body, { "idempotency-key": "k-2" });
    expect(taken.json().code).toBe("name_taken");
    const then = await post("/v1/projects", '{"slug":"free","name":"Free"}', { "idempotency-key": "k-2" });
    expect(then.response.status).toBe(201);
  });

  it("SEC-02 repeats a secret that is shown once, and stores it sealed only", async () => {
    const client = api.as(owner);
    const make = () => client(createToken, { body: { name: "sealed" }, idempotencyKey: "k-token" });
    const [first, again] = [await make(), await make()];
    expect(again.token).toBe(first.token);
    const { superuser } = openRoles(api.database);
    const [row] = await superuser`SELECT sealed_answer FROM idempotency_keys WHERE key = 'k-token'`;
    expect(Buffer.from(row?.["sealed_answer"]).includes(first.token)).toBe(false);
  });

  it("SEC-01 keeps the keys of two callers apart", async () => {
    const second = await tokenFor(api, org, "owner");
    const mine = await post("/v1/projects", '{"slug":"mine-1","name":"Mine"}', { "idempotency-key": "shared" });
    const theirs = await send("/v1/projects", {
      method: "POST",
      token: second,
      body: '{"slug":"theirs-1","name":"Theirs"}',
      headers: { "content-type": "application/json", "idempotency-key": "shared" },
    });
    expect([mine.response.status, theirs.response.status]).toEqual([201, 201]);
  });
});

describe("listener", () => {
  it.each(["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "x"])(
    "SEC-03 refuses the Host %j",
    async (host) => {
      const { status, body } = await withHost(host);
      expect([400, 421]).toContain(status);
      expect(ErrorEnvelope.parse(JSON.parse(body)).code).toMatch(/host_refused|invalid_request/);
    },
  );

  it.each(["localhost:9999", "127.0.0.1", "[::1]:3001"])("SEC-03 answers to %s", async (host) => {
    expect((await withHost(host)).status).toBe(200);
  });

  function withHost(host: string): Promise<{ status: number; body: string }> {
    const { port } = new URL(api.url);
    return new Promise((resolve, reject) => {
      const sent = rawRequest({ port, host: "127.0.0.1", path: "/healthz", headers: { host } }, (response) => {
        let body = "";
        response.on("data", (chunk) => {
          body += chunk;
        });
        response.on("end", () => resolve({ status: response.statusCode ?? 0, body }));
      });
      sent.on("error", reject);
      sent.end();
    });
  }

  it("OPS-01 tells that it lives, is ready, and its metrics by route", async () => {
    expect((await send("/healthz")).json()).toEqual({ status: "ok" });
    // A database that takes more than two seconds to answer is not ready.
    await expect
      .poll(async () => (await send("/readyz")).json())
      .toEqual({
        status: "ready",
        checks: { ca: { ok: true }, database: { ok: true }, migrations: { ok: true } },
      });
    await send("/v1/projects/01a1e13c-bc3d-71c5-9b58-aada3c2346d4");
    const { text } = await send("/metrics");
    expect(text).toContain('route="/v1/projects/:project_id"');
    expect(text).not.toContain("01a1e13c-bc3d-71c5-9b58-aada3c2346d4");
  });

  it("OPS-01 serves the OpenAPI document with every endpoint", async () => {
    const document = (await send("/openapi.json")).json();
    expect(document.openapi).toBe("3.1.0");
    expect(Object.keys(document.paths)).toContain("/v1/tokens/{token_id}");
  });

  it("SEC-03 gives the page a policy without inline script or style, and forbids framing it", async () => {
    const { response } = await send("/sign-in", { headers: { accept: "text/html" } });
    expect(response.status).toBe(200);
    const policy = response.headers.get("content-security-policy") ?? "";
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'");
    expect(policy).not.toContain("unsafe");
    expect(response.headers.get("x-frame-options")).toBe("DENY");
    expect(response.headers.get("referrer-policy")).toBe("no-referrer");
    expect(response.headers.get("cross-origin-opener-policy")).toBe("same-origin");
  });

  it("SEC-01 takes an id in capitals for the same id", async () => {
    const { response } = await send(`/v1/orgs/${org.id.toUpperCase()}`);
    expect(response.status).toBe(200);
  });

  it("SEC-03 lets no shared cache keep an answer", async () => {
    expect((await send("/v1/me")).response.headers.get("cache-control")).toBe("no-store");
  });
});
