import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { atEnd } from "../../../control-plane/test/support/at-end.ts";
import { exchange, retryAfter } from "./exchange.ts";

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
