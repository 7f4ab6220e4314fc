// A real api process's inside, listening on a free port, over a database of the test's own.

import { createHash, randomBytes } from "node:crypto";
import { type Client, createClient } from "@holdfast/contracts/client";
import type { Me } from "@holdfast/contracts/endpoints/me";
import { inviteMember } from "@holdfast/contracts/endpoints/members";
import { createOrganization } from "@holdfast/contracts/endpoints/organizations";
import { createAdminLink } from "@holdfast/contracts/endpoints/platform";
import { createToken } from "@holdfast/contracts/endpoints/tokens";
import type { Role } from "@holdfast/contracts/public/permissions";
import { describeSettings, readSettings, secretValues } from "@holdfast/kit/settings";
import type { LogStore } from "@holdfast/service/log-store/log-store";
import { startApi } from "../../control-plane/src/api/main.ts";
import { apiSettings } from "../../control-plane/src/api/settings.ts";
import { loginEnvironment } from "../../control-plane/src/database/settings.ts";
import { createTestDatabase, type TestDatabase } from "../database/database.ts";
import { startInside } from "../lifetime/start-inside.ts";

export type TestApi = {
  url: string;
  /** Of the node-facing listener. */
  nodeUrl: string;
  /** Of the internal listener; open with HOLDFAST_SERVICE_TOKEN in `env` only. */
  internalUrl: string;
  database: TestDatabase;
  operatorToken: string;
  /** As the local operator, in this organization. */
  operator: (orgId?: string) => Client;
  as: (token: string, orgId?: string) => Client;
  /** Everything that was logged so far, a line each. */
  logged: () => string;
  stop(): Promise<void>;
};

export async function startTestApi(
  options: {
    database?: TestDatabase;
    env?: Record<string, string>;
    /** Keeps its log lines, as a process of an installation does. */
    logs?: LogStore;
  } = {},
): Promise<TestApi> {
  const database = options.database ?? (await createTestDatabase());
  const operatorToken = `hfo_${randomBytes(32).toString("base64url")}`;
  const settings = readSettings(apiSettings, {
    HOLDFAST_API_PORT: "0",
    HOLDFAST_NODE_API_PORT: "0",
    HOLDFAST_API_INTERNAL_PORT: "0",
    ...loginEnvironment(database),
    HOLDFAST_MIGRATE_ON_START: "no",
    HOLDFAST_DATABASE_POOL_SIZE: "4",
    // Nodes of a test get only the tasks that the test creates.
    HOLDFAST_NODE_HEALTH_PROBE_INTERVAL_SECONDS: "0",
    HOLDFAST_KEK_BASE64: Buffer.alloc(32, 7).toString("base64"),
    HOLDFAST_OPERATOR_TOKEN_SHA256: createHash("sha256").update(operatorToken).digest("hex"),
    ...options.env,
  });
  const secrets = secretValues(apiSettings, settings);
  const own = { logs: options.logs, settings: describeSettings(apiSettings, settings), secrets };
  const { ports, logged, stop } = await startInside("api", (log) => startApi(settings, log, own), {
    ...{ store: options.logs, secrets },
  });
  const url = `http://127.0.0.1:${ports["public"]}`;
  const as = (token: string, orgId?: string) => createClient({ baseUrl: url, token, orgId });
  return {
    url,
    nodeUrl: `https://127.0.0.1:${ports["node"]}`,
    internalUrl: `https://127.0.0.1:${ports["internal"]}`,
    database,
    operatorToken,
    operator: (orgId) => as(operatorToken, orgId),
    as,
    logged,
    stop,
  };
}

export const PASSWORD = "correct horse battery";

/** A person's browser: keeps the cookie, says its origin. */
export type Browser = {
  me: Me;
  cookie: string;
  client: (orgId?: string) => Client;
};

/** Uses a one-time link as the page would. */
export async function redeem(
  api: TestApi,
  linkUrl: string,
  person: { email?: string; name?: string; password?: string } = {},
): Promise<Browser> {
  const secret = new URL(linkUrl).hash.slice(1);
  return browse(api, "/v1/links/redeem", { secret, password: PASSWORD, ...person });
}

export async function signInAs(api: TestApi, email: string, password = PASSWORD): Promise<Browser> {
  return browse(api, "/v1/sign-in", { email, password });
}

async function browse(api: TestApi, path: string, body: unknown): Promise<Browser> {
  const response = await fetch(`${api.url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", origin: api.url },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`);
  const cookie = response.headers.get("set-cookie")?.split(";")[0] ?? "";
  const withCookie: typeof fetch = (input, init) =>
    fetch(input, { ...init, headers: { ...(init?.headers as object), cookie, origin: api.url } });
  return {
    me: (await response.json()) as Me,
    cookie,
    client: (orgId) => createClient({ baseUrl: api.url, orgId, fetch: withCookie }),
  };
}

export async function firstAdmin(api: TestApi, email = "root@example.com"): Promise<Browser> {
  const link = await api.operator()(createAdminLink, { body: {} });
  return redeem(api, link.url, { email, name: "First Admin" });
}

export type TestOrg = { id: string; slug: string };

export async function createOrg(api: TestApi, slug: string): Promise<TestOrg> {
  const { id } = await api.operator()(createOrganization, { body: { slug, name: slug.toUpperCase() } });
  return { id, slug };
}

export async function addMember(api: TestApi, org: TestOrg, email: string, role: Role): Promise<Browser> {
  const invitation = await api.operator(org.id)(inviteMember, { body: { email, role } });
  return redeem(api, invitation.url, { name: email.split("@")[0] ?? email });
}

export async function tokenFor(api: TestApi, org: TestOrg, role: Role): Promise<string> {
  const { token } = await api.operator(org.id)(createToken, { body: { name: `${org.slug} ${role}`, role } });
  return token;
}
