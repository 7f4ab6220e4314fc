// The listener as a client meets it: every answer has its headers, every error its envelope.

import { once } from "node:events";
import { Agent, type IncomingMessage, request as send } from "node:http";
import { connect } from "node:net";
import { Worker } from "node:worker_threads";
import { ErrorEnvelope, errorCatalogue } from "@holdfast/contracts/errors";
import { UsageError } from "@holdfast/kit/settings";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Listener, startListener } from "./support/listener.ts";

let listener: Listener;
let ready = true;
beforeAll(async () => {
  listener = await startListener({
    readiness: async () => ({ ready, checks: { database: ready ? { ok: true } : { ok: false, reason: "gone" } } }),
    methodsOf: (path) => (path === "/echo" ? ["POST"] : []),
    routes: (app) => {
      app.post("/echo", async (request) => request.body);
      app.get("/things/:id", async () => ({ found: true }));
      app.get("/broken", async () => {
        throw new Error("a bug that talks: postgres://me:geheim@db/x");
      });
    },
  });
});
afterAll(() => listener.http.stop());

const get = (path: string, headers: Record<string, string> = {}) => fetch(`${listener.url}${path}`, { headers });
const post = (body: string, headers: Record<string, string> = { "content-type": "application/json" }) =>
  fetch(`${listener.url}/echo`, { method: "POST", headers, body });

/** With a Host of one's own, which fetch does not allow. */
async function getAs(host: string): Promise<{ status: number | undefined; body: string }> {
  const request = send(`${listener.url}/things/1`, { headers: { host } }).end();
  const [response] = (await once(request, "response")) as [IncomingMessage];
  let body = "";
  for await (const chunk of response) body += chunk;
  return { status: response.statusCode, body };
}

/** Whatever bytes one likes, and whatever comes back until the server closes. */
async function raw(bytes: string): Promise<string> {
  const socket = connect(listener.port, "127.0.0.1");
  socket.write(bytes);
  let answer = "";
  for await (const chunk of socket) answer += chunk;
  return answer;
}

/** Of an answer as it came over the socket. */
function envelopeIn(answer: string): { status: number; code: string } {
  const [head = "", body = ""] = answer.split("\r\n\r\n");
  const { code, correlation_id } = ErrorEnvelope.parse(JSON.parse(body));
  expect(head).toMatch(/content-type: application\/json/);
  expect(head).toContain(correlation_id);
  return { status: Number(/^HTTP\/1.1 (\d+)/.exec(head)?.[1]), code };
}

async function expectEnvelope(response: Response, code: keyof typeof errorCatalogue): Promise<ErrorEnvelope> {
  const envelope = ErrorEnvelope.parse(await response.json());
  expect(envelope.code).toBe(code);
  expect(response.status).toBe(errorCatalogue[code].status);
  expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
  expect(response.headers.get("x-correlation-id")).toBe(envelope.correlation_id);
  return envelope;
}

describe("headers of every answer", () => {
  it.for(["/healthz", "/things/1", "/nowhere", "/broken", "/%zz"])(
    "SEC-03 protect the browser: %s",
    async (path) => {
      const { headers } = await get(path);
      expect(headers.get("content-security-policy")).toBe("default-src 'none'; frame-ancestors 'none'");
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("x-frame-options")).toBe("DENY");
      expect(headers.get("referrer-policy")).toBe("no-referrer");
      expect(headers.get("cross-origin-resource-policy")).toBe("same-origin");
      expect(headers.get("strict-transport-security"), "only over TLS").toBeNull();
    },
  );

  it("AUDIT-03 carry the client's correlation id, which is logged", async () => {
    const response = await get("/things/1?password=geheim", { "x-correlation-id": "deploy-42:a.b_c" });
    expect(response.headers.get("x-correlation-id")).toBe("deploy-42:a.b_c");
    expect(listener.logged()).toContain('"correlation_id":"deploy-42:a.b_c"');
    expect(listener.logged(), "the template, not the URL").toContain('"route":"/things/:id"');
    expect(listener.logged()).not.toContain("geheim");
  });

  it.for(["", "-a", "a b", "a".repeat(65), '"}{"level":"fatal"'])(
    "AUDIT-03 carry a new correlation id instead of a misshapen one: %s",
    async (offered) => {
      const id = (await get("/things/1", { "x-correlation-id": offered })).headers.get("x-correlation-id");
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7/);
    },
  );
});

describe("the Host", () => {
  it("SEC-03 of a stranger is refused with 421 before anything else happens", async () => {
    for (const host of ["rebind.evil.example", `rebind.evil.example:${listener.port}`, "127.0.0.1.nip.io"]) {
      const { status, body } = await getAs(host);
      expect(status).toBe(421);
      expect(ErrorEnvelope.parse(JSON.parse(body)).code).toBe("host_refused");
    }
  });

  it("SEC-03 of this machine is served on any port, as `ssh -L` makes them", async () => {
    expect(await getAs("localhost:9999")).toMatchObject({ status: 200, body: '{"found":true}' });
  });
});

describe("errors", () => {
  it.for<[string, () => Promise<Response>, keyof typeof errorCatalogue]>([
    ["an unknown path", () => get("/nowhere"), "route_not_found"],
    ["a wrong method", () => get("/echo"), "method_not_allowed"],
    ["a path that cannot be decoded", () => get("/%zz"), "invalid_request"],
    ["broken JSON", () => post("{"), "malformed_json"],
    ["an empty body", () => post(""), "malformed_json"],
    ["a poisoned prototype", () => post('{"__proto__": {"operator": true}}'), "malformed_json"],
    ["a poisoned constructor", () => post('{"constructor": {"prototype": {"a": 1}}}'), "malformed_json"],
    ["a body of another type", () => post("a=b", { "content-type": "text/csv" }), "unsupported_media_type"],
    ["a body over the limit", () => post(JSON.stringify("x".repeat(2_000))), "body_too_large"],
    ["a bug", () => get("/broken"), "internal_error"],
  ])("SEC-03 come as an envelope: %s", async ([, ask, code]) => {
    await expectEnvelope(await ask(), code);
  });

  it("SEC-03 tell the allowed methods and the limit", async () => {
    expect((await get("/echo")).headers.get("allow")).toBe("POST");
    const envelope = await expectEnvelope(await post(JSON.stringify("x".repeat(2_000))), "body_too_large");
    expect(envelope.details).toEqual({ limit_bytes: 1_024 });
  });

  it("AUDIT-03 tell a client nothing about a bug, and the operator everything but its secrets", async () => {
    const response = await get("/broken", { "x-correlation-id": "the-bug" });
    expect(await response.text()).not.toContain("talks");
    const line = listener
      .logged()
      .split("\n")
      .find((one) => one.includes("the-bug") && one.includes("talks"));
    expect(line).toContain("postgres://me:[redacted]@db/x");
  });

  it.for([100, 101, 1_000, 12_000])(
    "SEC-03 come as an envelope for a path parameter of %d characters, without its text in the log",
    async (length) => {
      const before = listener.logged().length;
      const response = await get(`/things/${"marker".padEnd(length, "x")}`);
      expect([response.status, await response.json()]).toEqual([200, { found: true }]);
      const logged = listener.logged().slice(before);
      expect(logged).not.toContain("marker");
      expect(logged.length).toBeLessThan(1_000);
    },
  );

  it("SEC-03 come for another Host before anything is said about the path", async () => {
    const answer = await raw("GET /%zz HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n");
    expect(envelopeIn(answer)).toMatchObject({ status: 421, code: "host_refused" });
  });

  it.for([
    ["HTTP/1.1 without a Host", "GET /things/1 HTTP/1.1\r\nconnection: close\r\n\r\n", 421, "host_refused"],
    ["HTTP/1.0 without a Host", "GET /things/1 HTTP/1.0\r\n\r\n", 421, "host_refused"],
    ["an unknown expectation", "GET / HTTP/1.1\r\nhost: localhost\r\nexpect: foo\r\n\r\n", 400, "invalid_request"],
    ["a tunnel", "CONNECT localhost:1 HTTP/1.1\r\nhost: localhost\r\n\r\n", 405, "method_not_allowed"],
    [
      "headers over the limit",
      `GET / HTTP/1.1\r\nhost: localhost\r\nx: ${"y".repeat(20_000)}\r\n\r\n`,
      400,
      "invalid_request",
    ],
  ] as const)("SEC-03 come as an envelope: %s", async ([, bytes, status, code]) => {
    expect(envelopeIn(await raw(bytes))).toMatchObject({ status, code });
  });

  it.for(["NONSENSE\r\n\r\n", "GET /\u0000 HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nhost localhost\r\n\r\n"])(
    "SEC-03 answer what is not HTTP with an envelope too: %j",
    async (bytes) => {
      const [head = "", body = ""] = (await raw(bytes)).split("\r\n\r\n");
      expect(head).toMatch(/^HTTP\/1.1 400 /);
      expect(head).toContain("content-type: application/json");
      expect(ErrorEnvelope.parse(JSON.parse(body)).code).toBe("invalid_request");
    },
  );
});

describe("health", () => {
  it("OPS-02 lives, and is ready when its parts are", async () => {
    expect(await (await get("/healthz")).json()).toEqual({ status: "ok" });
    const yes = await get("/readyz");
    expect([yes.status, await yes.json()]).toEqual([200, { status: "ready", checks: { database: { ok: true } } }]);
    ready = false;
    const no = await get("/readyz");
    ready = true;
    const checks = { database: { ok: false, reason: "gone" } };
    expect([no.status, await no.json()]).toEqual([503, { status: "not_ready", checks }]);
  });

  it("AUDIT-03 gives metrics with route templates to this machine", async () => {
    await get("/things/12345");
    const response = await get("/metrics");
    const text = await response.text();
    expect(response.status).toBe(200);
    expect(text).toContain('route="/things/:id"');
    expect(text).not.toContain("12345");
  });

  it.for(["x-forwarded-for", "forwarded"])(
    "SEC-04 gives no metrics to whom a proxy stands for: %s",
    async (name) => {
      await expectEnvelope(await get("/metrics", { [name]: "for=203.0.113.9" }), "route_not_found");
    },
  );
});

describe("ports and ending", () => {
  it("OPS-01 names the holder of a taken port, and the setting that chooses another", async () => {
    const taken = await startListener({ port: listener.port }).catch((error: unknown) => error);
    expect(taken).toBeInstanceOf(UsageError);
    const { message } = taken as UsageError;
    expect(message).toContain(`Port ${listener.port} for the test is in use by pid ${process.pid}`);
    expect(message).toContain("HOLDFAST_TEST_PORT");
  });

  it("OPS-02 answers what is under way, refuses what is new with an envelope, then closes", async () => {
    const arrived = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    const closing = Promise.withResolvers<void>();
    const mayClose = Promise.withResolvers<void>();
    const draining = await startListener({
      routes: (app) => {
        app.get("/slow", async () => {
          arrived.resolve();
          await release.promise;
          return { done: true };
        });
        // Holds the listener open while it drains, as a load balancer's last requests find it.
        app.addHook("preClose", async () => {
          closing.resolve();
          await mayClose.promise;
        });
      },
    });
    const slow = fetch(`${draining.url}/slow`);
    await arrived.promise;
    const stopped = draining.http.stop();
    await closing.promise;
    const refused = await fetch(`${draining.url}/healthz`);
    expect(refused.headers.get("retry-after")).toBe("2");
    expect(refused.headers.get("connection")).toBe("close");
    await expectEnvelope(refused, "shutting_down");
    release.resolve();
    mayClose.resolve();
    const answered = await slow;
    expect([answered.status, await answered.json()]).toEqual([200, { done: true }]);
    await stopped;
    await expect(fetch(`${draining.url}/healthz`)).rejects.toThrow();
  });
});

describe("a listener that drains", () => {
  it("OPS-02 says so while it serves, ends each connection with its answer, and drops none that is open", async () => {
    const { http, port, url } = await startListener({
      routes: (app) => app.get("/work", async () => ({ done: true })),
    });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const ask = async (path: string) => {
      const [response] = (await once(send(`${url}${path}`, { agent }).end(), "response")) as [IncomingMessage];
      response.resume();
      return [response.statusCode, response.headers.connection];
    };
    expect(await ask("/work")).toEqual([200, "keep-alive"]);
    const idle = connect(port, "127.0.0.1");
    await once(idle, "connect");
    http.startDraining();
    const ready = await fetch(`${url}/readyz`);
    expect([ready.status, await ready.json()]).toEqual([
      503,
      { status: "not_ready", checks: { draining: { ok: false, reason: expect.any(String) } } },
    ]);
    expect(await ask("/work")).toEqual([200, "close"]);
    const drained = http.stopAccepting(60_000);
    await expect.poll(() => fetch(`${url}/work`).catch(() => "refused")).toBe("refused");
    // Nobody knows whether a request is on its way here: it is served.
    idle.write("GET /work HTTP/1.1\r\nhost: localhost\r\n\r\n");
    let answer = "";
    for await (const chunk of idle) answer += chunk;
    expect(answer).toMatch(/^HTTP\/1.1 200 [\s\S]*connection: close[\s\S]*"done":true/i);
    await drained;
    await http.stop();
  });

  it("OPS-02 serves who has connected before it stops to accept, though it was too busy to notice", async () => {
    const { http, port } = await startListener({
      routes: (app) => app.post("/work", async () => ({ done: true })),
    });
    http.startDraining();
    const sent = new Int32Array(new SharedArrayBuffer(4));
    const client = new Worker(
      `const { parentPort, workerData: { port, sent } } = require("node:worker_threads");
       const socket = require("node:net").connect(port, "127.0.0.1");
       let answer = "";
       socket.on("data", (chunk) => { answer += chunk; });
       socket.on("error", (error) => { answer += error.code; });
       socket.on("close", () => parentPort.postMessage(answer));
       socket.write("POST /work HTTP/1.1\\r\\nhost: localhost\\r\\ncontent-length: 0\\r\\n\\r\\n", () => {
         Atomics.store(sent, 0, 1);
         Atomics.notify(sent, 0);
       });`,
      { eval: true, workerData: { port, sent } },
    );
    const answer = once(client, "message");
    // This thread serves: it does nothing until the request is sent, and then stops to accept at once.
    expect(Atomics.wait(sent, 0, 0, 30_000)).not.toBe("timed-out");
    await http.stopAccepting(30_000);
    expect(await answer).toEqual([expect.stringMatching(/^HTTP\/1.1 200 /)]);
    await http.stop();
  });

  it("OPS-02 finishes what is under way, also what took longer than it drains", async () => {
    const work = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const { http, url } = await startListener({
      routes: (app) =>
        app.get("/slow", async () => {
          begun.resolve();
          await work.promise;
          return { done: true };
        }),
    });
    const answer = fetch(`${url}/slow`);
    await begun.promise;
    http.startDraining();
    await http.stopAccepting(1);
    let isStopped = false;
    const stopped = http.stop().then(() => {
      isStopped = true;
    });
    await expect(fetch(`${url}/slow`)).rejects.toThrow();
    expect(isStopped).toBe(false);
    work.resolve();
    expect(await (await answer).json()).toEqual({ done: true });
    await stopped;
  });
});
