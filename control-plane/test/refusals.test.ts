// What the contract declares each endpoint to refuse, and what the server really answers: every refusal is declared, and
// every refusal that follows from who may call is real.

import type { Endpoint } from "@holdfast/contracts/endpoint";
import { allEndpoints } from "@holdfast/contracts/endpoints/all";
import { createToken } from "@holdfast/contracts/endpoints/tokens";
import type { ErrorCode } from "@holdfast/contracts/errors";
import { CERTIFICATE_HEADER } from "@holdfast/contracts/headers";
import { nodeApiEndpoints, waitForTasks } from "@holdfast/contracts/node/endpoints";
import { BOOT_HEADER, INSTANCE_HEADER } from "@holdfast/contracts/node/limits";
import { refusalsOf, sentCode } from "@holdfast/contracts/refusals";
import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg, tokenFor } from "../../testkit/api/api.ts";
import { authorityOf, certificateFor } from "../../testkit/api/certificates.ts";
import { acceptedBody, askRaw, codeOf, type RawRequest } from "../../testkit/api/hostile.ts";
import { enrollTestNode, type TestNode } from "../../testkit/api/nodes.ts";
import { enrollGateway, SERVICE_TOKEN } from "../../testkit/api/services.ts";
import { openRoles } from "../../testkit/database/database.ts";
import { temporaryAuthority } from "../src/identity/authority.ts";

let api: TestApi;
let org: TestOrg;
let owner: string;
/** Tokens that may do one thing each, and not the other. */
let narrow: Record<"org:read" | "audit:read", string>;

beforeAll(async () => {
  api = await startTestApi({ env: { HOLDFAST_SERVICE_TOKEN: SERVICE_TOKEN } });
  org = await createOrg(api, "declared");
  owner = await tokenFor(api, org, "owner");
  const only = async (scope: "org:read" | "audit:read") => {
    const body = { name: scope, role: "owner" as const, scopes: [scope] };
    return (await api.operator(org.id)(createToken, { body })).token;
  };
  narrow = { "org:read": await only("org:read"), "audit:read": await only("audit:read") };
});

const as = (token: string) => ({ authorization: `Bearer ${token}` });
const withIds = (path: string, id: string) => path.replace("{org_id}", org.id).replace(/\{\w+\}/g, id);

/** Of endpoints that need one. */
const search: Record<string, string> = {
  readLeaseOutput: `?command_id=${uuidv7()}`,
  findLogs: `?id=${uuidv7()}`,
  listRecentRuns: `?workflow_ids=${uuidv7()}`,
};

/** What a good request looks like, of somebody who may. */
function honest(endpoint: Endpoint): RawRequest {
  const body = acceptedBody(endpoint);
  return {
    method: endpoint.method,
    path: withIds(endpoint.path, uuidv7()) + (search[endpoint.name] ?? ""),
    headers: {
      ...(endpoint.access === "operator" ? as(api.operatorToken) : as(owner)),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { body }),
  };
}

/** The same with one thing wrong at a time. */
function* wrong(endpoint: Endpoint): Generator<RawRequest> {
  const good = honest(endpoint);
  const but = (headers: Record<string, string>, rest: Partial<RawRequest> = {}): RawRequest => ({
    ...good,
    ...rest,
    headers: { ...good.headers, ...headers },
  });
  yield but({ host: "evil.example" });
  yield but({ [CERTIFICATE_HEADER]: "x" });
  yield but({ authorization: "Bearer hft_unknown" });
  yield but(as(owner));
  const { access } = endpoint;
  yield but(as(narrow[typeof access === "object" && access.scope === "org:read" ? "audit:read" : "org:read"]));
  yield but(as(api.operatorToken));
  yield but({ "x-org-id": uuidv7() });
  const more = good.path.includes("?") ? "&" : "?";
  yield but({}, { path: `${good.path}${more}nobody_knows=1` });
  yield but({}, { path: endpoint.path.replace(/\{\w+\}/g, "7") });
  yield but({}, { path: endpoint.path.replace(/\{\w+\}/g, "7".repeat(99)) });
  for (const name of Object.keys(endpoint.query?.shape ?? {}))
    yield but({}, { path: `${good.path}${more}${name}=&${name}=` });
  if (endpoint.method === "GET") return;
  const json = { "content-type": "application/json" };
  yield but(json, { body: "{" });
  yield but(json, { body: '[{"a":"\\u0000"}]' });
  yield but({ "content-type": "text/csv" }, { body: "a,b" });
  yield but(json, { body: JSON.stringify("x".repeat(300_000)) });
  yield but({ origin: "https://evil.example" });
  yield but({ "idempotency-key": "a b" });
}

/** Needs a fault of ours, or an earlier request. */
const notProvoked: readonly ErrorCode[] = [
  ...(["shutting_down", "database_unavailable", "internal_error", "idempotency_key_reused"] as const),
];

describe("the refusals of a public endpoint", () => {
  it.for(allEndpoints.map((one) => [one.name, one] as const))(
    "are declared, and the declared ones are real: %s",
    async ([, endpoint]) => {
      const declared = refusalsOf(endpoint);
      const seen = new Set<string>();
      for (const request of wrong(endpoint)) {
        const sent = codeOf(await askRaw(api.url, {}, request));
        if (sent === undefined) continue;
        const code = declared.find((one) => sentCode(endpoint, one) === sent);
        expect(code, `${sent} of ${JSON.stringify(request).slice(0, 300)}`).toBeDefined();
        seen.add(String(code));
      }
      const own = new Set<string>([...(endpoint.errors ?? []), ...notProvoked]);
      expect([...seen]).toEqual(expect.arrayContaining(declared.filter((code) => !own.has(code))));
    },
  );
});

describe("the refusals of a node-facing endpoint", () => {
  type Shown = [code: ErrorCode, tls: () => Promise<{ cert: string; key: string } | object>];
  let node: TestNode;
  let shown: Shown[];

  beforeAll(async () => {
    node = await enrollTestNode(api, org.id);
    const authority = await authorityOf(api);
    const changed = async (status: "quarantined" | "retired") => {
      const other = await enrollTestNode(api, org.id);
      const { superuser } = openRoles(api.database);
      await superuser`UPDATE nodes SET status = ${status}, revoked_at = now() WHERE id = ${other.id}`;
      return other.tls;
    };
    const replaced = async () => {
      const { id, tls } = await enrollTestNode(api, org.id);
      await enrollTestNode(api, org.id, { nodeId: id });
      return tls;
    };
    const at = (hours: number) => new Date(Date.now() + hours * 3_600_000);
    shown = [
      ["certificate_missing", async () => ({})],
      ["certificate_untrusted", async () => certificateFor(node.id, temporaryAuthority(new Date()))],
      ["certificate_unusable", async () => (await enrollGateway(api)).tls],
      ["certificate_not_yet_valid", async () => certificateFor(node.id, authority, at(2))],
      ["cert_expired", async () => certificateFor(node.id, authority, at(-25))],
      ["identity_revoked", () => changed("quarantined")],
      ["identity_retired", () => changed("retired")],
      ["certificate_replaced", replaced],
      ["node_mismatch", async () => (await enrollTestNode(api, org.id)).tls],
    ];
  });

  it.for(nodeApiEndpoints.map((one) => [one.name, one] as const))(
    "are declared, and those of identity are real: %s",
    async ([, endpoint]) => {
      const declared = refusalsOf(endpoint);
      const agent = { [INSTANCE_HEADER]: uuidv7(), [BOOT_HEADER]: "boot-1" };
      const ask = (request: RawRequest, tls: object) =>
        askRaw(api.nodeUrl, tls, { ...request, headers: { ...request.headers, ...agent } });
      for (const request of wrong(endpoint)) {
        const [path = "", query] = request.path.replace(/nodes\/[0-9a-f-]{36}/, `nodes/${node.id}`).split("?");
        const search = [...(endpoint === waitForTasks ? ["wait=0"] : []), ...(query ? [query] : [])].join("&");
        const code = codeOf(await ask({ ...request, path: search ? `${path}?${search}` : path }, node.tls));
        if (code !== undefined) expect(declared).toContain(code);
      }
      const good = honest(endpoint);
      const path = withIds(endpoint.path, node.id);
      for (const [code, tls] of shown) {
        expect(declared).toContain(code);
        expect(codeOf(await ask({ ...good, path }, await tls()))).toBe(code);
      }
    },
  );
});
