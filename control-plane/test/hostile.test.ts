// Hostile input at every endpoint of the three listeners of the api: whatever is sent, it is answered with an envelope
// and never with a failure of ours, and no request decides how large the log grows.

import type { Endpoint } from "@holdfast/contracts/endpoint";
import { allEndpoints } from "@holdfast/contracts/endpoints/all";
import { followServiceNews, serviceEndpoints } from "@holdfast/contracts/internal/endpoints";
import { nodeApiEndpoints } from "@holdfast/contracts/node/endpoints";
import { BOOT_HEADER, INSTANCE_HEADER } from "@holdfast/contracts/node/limits";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi, tokenFor } from "../../testkit/api/api.ts";
import { askRaw, codeOf, requestsFor, sendBytes } from "../../testkit/api/hostile.ts";
import { enrollTestNode, sendHeartbeatFrom, type TestNode } from "../../testkit/api/nodes.ts";
import { enrollGateway, SERVICE_TOKEN } from "../../testkit/api/services.ts";

type Door = {
  url: string;
  tls: object;
  headers: (endpoint: Endpoint) => Record<string, string>;
  ids: string[];
  known: Record<string, string>;
};

let api: TestApi;
let node: TestNode;
const doors: Record<string, Door> = {};
/** By listener: the codes of all answers. */
const seen = new Set<string>();
const RUNS = 25;

beforeAll(async () => {
  api = await startTestApi({ env: { HOLDFAST_SERVICE_TOKEN: SERVICE_TOKEN } });
  const org = await createOrg(api, "hostile");
  // The one is told what people do to nodes; the other stays what it is.
  const victim = await enrollTestNode(api, org.id, { hostname: "victim" });
  node = await enrollTestNode(api, org.id, { hostname: "attacker" });
  for (const one of [victim, node]) await sendHeartbeatFrom(one);
  const token = await tokenFor(api, org, "owner");
  const gateway = await enrollGateway(api);
  const as = (secret: string) => ({ authorization: `Bearer ${secret}` });
  doors["public"] = {
    url: api.url,
    tls: {},
    headers: ({ access }) => as(access === "operator" ? api.operatorToken : token),
    ids: [victim.id, org.id],
    known: {},
  };
  const agent = { [INSTANCE_HEADER]: gateway.id, [BOOT_HEADER]: "boot-1" };
  doors["node"] = { url: api.nodeUrl, tls: node.tls, headers: () => agent, ids: [node.id], known: {} };
  doors["internal"] = {
    url: api.internalUrl,
    tls: gateway.tls,
    headers: () => ({}),
    ids: [org.id],
    known: { gateway_id: gateway.id, instance_id: gateway.id },
  };
});

/** What a request adds to the log may not depend on how much it sends. */
const MOST_LOGGED = 10_000;

async function attack(name: string, endpoint: Endpoint): Promise<void> {
  const door = doors[name];
  if (!door) throw new Error(`there is no listener ${name}`);
  await fc.assert(
    fc.asyncProperty(requestsFor(endpoint, door), async (request) => {
      const before = api.logged().length;
      const headers = { ...door.headers(endpoint), ...request.headers };
      const answer = await askRaw(door.url, door.tls, { ...request, headers });
      seen.add(`${name} ${codeOf(answer) ?? "done"}`);
      expect(answer.status, answer.body).toBeLessThan(500);
      expect(api.logged().length - before).toBeLessThan(MOST_LOGGED);
    }),
    { numRuns: RUNS },
  );
}

describe("hostile input", () => {
  it.for(allEndpoints.map((one) => [one.name, one] as const))(
    "SEC-03 is refused on the public listener: %s",
    async ([, endpoint]) => attack("public", endpoint),
  );

  it.for([...nodeApiEndpoints].map((one) => [one.name, one] as const))(
    "SEC-03 is refused on the node-facing listener: %s",
    async ([, endpoint]) => attack("node", endpoint),
  );

  it.for(serviceEndpoints.filter((one) => one !== followServiceNews).map((one) => [one.name, one] as const))(
    "SEC-03 is refused on the internal listener: %s",
    async ([, endpoint]) => attack("internal", endpoint),
  );

  it("SEC-03 gets past the door in these tests, and not only as far as the door", () => {
    expect([...seen]).toEqual(
      expect.arrayContaining(
        ["public", "node", "internal"].flatMap((name) => [`${name} done`, `${name} malformed_json`]),
      ),
    );
  });

  it("AGENT-01 with a NUL in a diagnostic record's correlation id is cleaned and kept", async () => {
    const record = {
      ...{ seq: 7, at: new Date().toISOString(), reason: "certificate_header_refused", detail: "" },
      ...{ instance_id: "018f0000-0000-4000-8000-000000000000", correlation_id: "abc\0def" },
    };
    const path = node.path("diagnostics");
    const answer = await node.client.ask({ method: "POST", path, body: { records: [record] } });
    expect(answer).toMatchObject({ status: 200, body: { seq: 7 } });
  });

  it.for(["public", "node", "internal"])(
    "SEC-03 without a Host is answered with an envelope: %s",
    async (name) => {
      const { url, tls } = doors[name] as Door;
      const port = Number(new URL(url).port);
      for (const version of ["1.1", "1.0"]) {
        const answer = await sendBytes(
          url.startsWith("https") ? { ...tls, port } : port,
          `GET /healthz HTTP/${version}\r\nconnection: close\r\n\r\n`,
        );
        expect([answer.status, codeOf(answer)]).toEqual([421, "host_refused"]);
      }
    },
  );

  it.for(["public", "node", "internal"])(
    "SEC-03 in a path parameter of any length needs a caller first: %s",
    async (name) => {
      const { url } = doors[name] as Door;
      const path = `/internal/v1/nodes/${"z".repeat(9_000)}/heartbeat`;
      const answer = await askRaw(
        url,
        {},
        { method: "POST", path: name === "public" ? `/v1/nodes/${"z".repeat(9_000)}` : path },
      );
      expect(answer.status).toBeLessThan(500);
      expect(codeOf(answer)).toMatch(/^(method_not_allowed|certificate_missing|service_identity_refused)$/);
      expect(api.logged()).not.toContain("zzzz");
    },
  );
});
