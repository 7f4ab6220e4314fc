import { once } from "node:events";
import http from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { describe, expect, it } from "vitest";
import { atEnd } from "../../../testkit/lifetime/at-end.ts";
import { type Ask, exchange, retryAfter } from "./exchange.ts";
import { classify, LinkFailure } from "./failures.ts";
import { lookupBy } from "./lookup.ts";

async function failureOfAsking(url: string, more: Partial<Ask> = {}): Promise<LinkFailure> {
  const ask: Ask = { method: "GET", url: new URL(url), timeoutMs: 30_000, via: { agent: false }, ...more };
  const failure = await exchange(ask).catch((error: unknown) => error);
  if (!(failure instanceof LinkFailure)) throw new Error("it did not fail");
  return failure;
}

/** What an agent makes of a page in place of an answer. */
async function excerptOf(page: string): Promise<string> {
  const server = http.createServer((_, response) => response.writeHead(502).end(page)).listen(0, "127.0.0.1");
  atEnd(() => server.close());
  await once(server, "listening");
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const failed = exchange({ method: "GET", url, timeoutMs: 30_000, via: { agent: false } });
  return failed.then(
    () => "an answer",
    (error: Error) => error.message,
  );
}

describe("a page instead of an answer", () => {
  it("AGENT-01 is told by its words", async () => {
    expect(await excerptOf("<html><style>p { top: 0 }</style><p>Bad  Gateway</p></html>")).toContain(
      ": Bad Gateway",
    );
  });

  it.for(["<", "<script ", "<style></styl"])("AGENT-01 made of %s keeps no agent busy", async (part) => {
    expect(await excerptOf(part.repeat(4_000_000 / part.length))).toContain("HTTP 502, not from the server");
  });
});

describe("a connection that does not come about", () => {
  const lookup = lookupBy(() => ({ "api.example.com": ["127.0.0.1"] }));

  it("AGENT-01 DRIFT-13 names the hop at which it is stuck", async () => {
    const silent = createServer(() => undefined).listen(0, "127.0.0.1");
    atEnd(() => silent.close());
    await once(silent, "listening");
    const port = (silent.address() as AddressInfo).port;
    const named = (via: Ask["via"], connectTimeoutMs: number) =>
      failureOfAsking(`https://api.example.com:${port}`, { via: { agent: false, ...via }, connectTimeoutMs });

    const unresolved = await named({ lookup: () => undefined }, 50);
    expect(classify(unresolved.failure)).toMatchObject({
      reason: "api_name_unresolved",
      detail: "LOOKUP_TIMEOUT: the name api.example.com was not resolved within 50 ms",
    });
    // Time enough to get as far as TLS, also for a process that stands still for a moment.
    const mute = await named({ lookup }, 2_000);
    expect(classify(mute.failure)).toMatchObject({
      reason: "control_plane_unreachable",
      detail: expect.stringMatching(/^TLS_TIMEOUT: 127.0.0.1 took .* within 2000 ms \(api.example.com led to 127/),
    });
  });

  it("AGENT-01 DRIFT-13 says where a name led that nobody answers at", async () => {
    const refused = await failureOfAsking("https://api.example.com:1", { via: { agent: false, lookup } });
    expect(classify(refused.failure)).toMatchObject({
      reason: "api_unreachable",
      detail: expect.stringMatching(/ECONNREFUSED 127.0.0.1:1 \(api.example.com led to 127.0.0.1\)$/),
    });
  });
});

describe("a correlation id", () => {
  it("CHAOS-02 is the agent's own, and the same on both sides when no answer comes", async () => {
    const seen: unknown[] = [];
    const server = http.createServer((request) => {
      seen.push(request.headers["x-correlation-id"]);
      request.socket.destroy();
    });
    server.listen(0, "127.0.0.1");
    atEnd(() => server.close());
    await once(server, "listening");
    const failure = await failureOfAsking(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    expect(classify(failure.failure).reason).toBe("api_unreachable");
    expect(seen).toEqual([failure.correlationId]);
    expect(failure.correlationId).toMatch(/^[0-9a-f-]{36}$/);
  });
});

describe("retry-after", () => {
  it.for([
    ["7", 7],
    ["0", 0],
    ["Sun, 01 Mar 2026 12:00:30 GMT", 30],
    ["Sun, 01 Mar 2026 11:00:00 GMT", 0],
    ["soon", undefined],
    ["-5", undefined],
    [undefined, undefined],
  ] as const)("AGENT-02 %s is %s seconds", ([header, seconds]) => {
    expect(retryAfter(header, Date.parse("2026-03-01T12:00:00Z"))).toBe(seconds);
  });
});

describe("an answer", () => {
  it("AGENT-06 says which address of this host it came to", async () => {
    const server = http.createServer((_, response) => response.end("{}")).listen(0, "127.0.0.1");
    atEnd(() => server.close());
    await once(server, "listening");
    const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    const answer = await exchange({ method: "GET", url, timeoutMs: 30_000, via: { agent: false } });
    expect(answer.localAddress).toBe("127.0.0.1");
  });
});
