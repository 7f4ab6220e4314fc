// Hostile input at both listeners of the gateway: plain requests and upgrades, whatever they carry, are answered with an
// envelope and never with a failure of ours.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { askRaw, codeOf, sendBytes } from "../../testkit/api/hostile.ts";
import { useRig } from "../../testkit/gateway/rig.ts";
import { anyCharacter } from "../../testkit/schemas/any-character.ts";

const rig = useRig();

const segment = fc.constantFrom(
  ...[
    "v1",
    "terminal",
    "internal",
    "nodes",
    "terminals",
    "healthz",
    "%00",
    "%zz",
    "%",
    "..",
    "",
    "x".repeat(9_000),
  ],
  ...["018f0000-0000-7000-8000-000000000000", "018F0000-0000-7000-8000-00000000000G"],
);
const path = fc
  .array(segment, { minLength: 1, maxLength: 6 })
  .map((parts) => `/${parts.join("/")}`.slice(0, 12_000));
const header = fc
  .string({ unit: anyCharacter, maxLength: 60 })
  .map((text) => text.replace(/[^\x20-\x7e\x80-\xff]/g, ""));
const request = fc.record({
  method: fc.constantFrom("GET", "POST", "DELETE", "OPTIONS", "PROPFIND"),
  path: fc.oneof(path, fc.constantFrom("/v1/terminal", "//", "http://[", "*")),
  headers: fc.record(
    {
      upgrade: fc.constantFrom("websocket", "h2c"),
      connection: fc.constantFrom("upgrade, close", "close"),
      "sec-websocket-version": fc.constantFrom("13", "8", "x"),
      "sec-websocket-key": fc.oneof(fc.constant("AAAAAAAAAAAAAAAAAAAAAA=="), header),
      "sec-websocket-protocol": header,
      origin: header,
      "x-correlation-id": header,
    },
    { requiredKeys: ["connection"] },
  ),
});

describe("hostile input", () => {
  it.for(["public", "node"] as const)("SEC-03 is refused on the %s listener", async (name) => {
    const [url, tls] =
      name === "public"
        ? [rig.gateway.url, {}]
        : [rig.gateway.nodeUrl, { cert: rig.node.cert, key: rig.node.key }];
    await fc.assert(
      fc.asyncProperty(request, async (made) => {
        const before = rig.gateway.logged().length;
        const answer = await askRaw(url, tls, { ...made, headers: made.headers as Record<string, string> });
        codeOf(answer);
        expect(answer.status, answer.body).toBeLessThan(500);
        expect(rig.gateway.logged().length - before).toBeLessThan(10_000);
      }),
      { numRuns: 300 },
    );
  });

  it.for(["public", "node"] as const)("SEC-03 without a Host is answered with an envelope: %s", async (name) => {
    const url = new URL(name === "public" ? rig.gateway.url : rig.gateway.nodeUrl);
    const port = Number(url.port);
    const to = name === "public" ? port : { cert: rig.node.cert, key: rig.node.key, port };
    const answer = await sendBytes(to, "GET /healthz HTTP/1.1\r\nconnection: close\r\n\r\n");
    expect([answer.status, codeOf(answer)]).toEqual([421, "host_refused"]);
  });
});
