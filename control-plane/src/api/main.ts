// The api process: everything durable, the public API and the web app.

import { fileURLToPath } from "node:url";
import type { Endpoint } from "@holdfast/contracts/endpoint";
import { allEndpoints } from "@holdfast/contracts/endpoints/all";
import { ApiError } from "@holdfast/contracts/errors";
import { openApiDocument } from "@holdfast/contracts/openapi";
import { UsageError, type Values } from "@holdfast/kit/settings";
import type { Readiness } from "@holdfast/service/health";
import { createHttpServer } from "@holdfast/service/http";
import type { RunningProcess } from "@holdfast/service/lifecycle";
import type { Log } from "@holdfast/service/log";
import { createMetrics } from "@holdfast/service/metrics";
import { checkExposure } from "@holdfast/service/settings";
import { version } from "@holdfast/service/version";
import { auditRoutes } from "../audit/routes.ts";
import { isUnavailable, openPool, type Sql } from "../database/connect.ts";
import { migrate, pendingMigrations } from "../database/migrate.ts";
import { createAnswerVault } from "../idempotency/replay.ts";
import { linkRoutes } from "../links/routes.ts";
import { memberRoutes } from "../members/routes.ts";
import { organizationRoutes } from "../organizations/routes.ts";
import { createAuthenticator } from "../people/authenticate.ts";
import { peopleRoutes } from "../people/routes.ts";
import { sessionCookie } from "../people/session-cookie.ts";
import { ensureFirstOrganization } from "../platform/first-organization.ts";
import { platformRoutes } from "../platform/routes.ts";
import { projectRoutes } from "../projects/routes.ts";
import { openKeyring } from "../sealing/keyring.ts";
import { tokenRoutes } from "../tokens/routes.ts";
import type { ApiContext } from "./context.ts";
import { apiSettings } from "./settings.ts";
import { serveWebApp } from "./web-app.ts";

const webApp = fileURLToPath(new URL("../../../web/dist", import.meta.url));
const READINESS_DEADLINE_MS = 2_000;

export async function startApi(settings: Values<typeof apiSettings>, log: Log): Promise<RunningProcess> {
  checkExposure(settings, apiSettings.bind.env);
  const url = settings.databaseUrl ?? missing(apiSettings.databaseUrl.env);
  const kek = { id: settings.kekId, key: settings.kek ?? missing(apiSettings.kek.env) };
  if (settings.migrateOnStart === "yes") await migrate({ url });

  const pool = { url, max: settings.databasePoolSize, application: "holdfast-api" };
  const app = openPool({ ...pool, role: "holdfast_app" });
  const system = openPool({ ...pool, role: "holdfast_system" });
  const keyring = await openKeyring(system, { current: kek, previous: previousKek(settings) });
  await ensureFirstOrganization(system);

  const http = createHttpServer({
    process: "api",
    exposure: settings,
    log,
    metrics: createMetrics("api"),
    bodyLimit: settings.bodyLimit,
    readiness: () => readiness(system),
    translateError: (error) => (isUnavailable(error) ? new ApiError("database_unavailable") : undefined),
    methodsOf,
  });
  const context: ApiContext = {
    http: http.app,
    app,
    system,
    authenticator: createAuthenticator(system, {
      operatorTokenSha256: settings.operatorTokenSha256,
      onTouchFailed: (error) => log.warn({ err: error }, "last use was not recorded"),
    }),
    answers: await createAnswerVault(keyring),
    cookie: sessionCookie({
      installationId: await installationId(system),
      secure: settings.tlsCertFile !== undefined || settings.publicUrl?.startsWith("https:") === true,
    }),
    log,
    publicUrl: settings.publicUrl,
  };
  addRoutes(context);
  const port = await http.listen({ port: settings.port, portSetting: apiSettings.port.env });
  log.info({ port, version }, "api listens");

  return {
    ports: { public: port },
    async stop() {
      await http.stop();
      await Promise.all([app.end({ timeout: 5 }), system.end({ timeout: 5 })]);
    },
  };
}

function addRoutes(api: ApiContext): void {
  peopleRoutes(api);
  linkRoutes(api);
  organizationRoutes(api);
  projectRoutes(api);
  memberRoutes(api);
  tokenRoutes(api);
  auditRoutes(api);
  platformRoutes(api);
  const document = JSON.stringify(openApiDocument(allEndpoints, { version }));
  api.http.get("/openapi.json", (_request, reply) => reply.type("application/json; charset=utf-8").send(document));
  serveWebApp(api.http, webApp);
  for (const endpoint of allEndpoints) {
    const url = endpoint.path.replace(/\{(\w+)\}/g, ":$1");
    if (!api.http.hasRoute({ method: endpoint.method, url })) throw new Error(`${endpoint.name} has no handler`);
  }
}

const patterns = allEndpoints.map((endpoint: Endpoint) => ({
  method: endpoint.method,
  pattern: new RegExp(`^${endpoint.path.replace(/\{\w+\}/g, "[^/]+")}$`),
}));

function methodsOf(path: string): string[] {
  return patterns.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method);
}

async function readiness(system: Sql): Promise<Readiness> {
  const database = await Promise.race([
    pendingMigrations(system).then(
      (pending) => ({ ok: true, pending: pending.length }),
      (error: Error) => ({ ok: false, pending: 0, reason: isUnavailable(error) ? "unreachable" : "query failed" }),
    ),
    new Promise<{ ok: boolean; pending: number; reason: string }>((resolve) =>
      setTimeout(() => resolve({ ok: false, pending: 0, reason: "no answer" }), READINESS_DEADLINE_MS).unref(),
    ),
  ]);
  const reason = "reason" in database ? { reason: database.reason } : {};
  const migrations = { ok: database.ok && database.pending === 0 };
  return {
    ready: migrations.ok,
    checks: {
      database: { ok: database.ok, ...reason },
      migrations: migrations.ok ? migrations : { ok: false, reason: `${database.pending} pending` },
    },
  };
}

async function installationId(system: Sql): Promise<string> {
  const [row] = await system<{ id: string }[]>`SELECT id FROM installation`;
  if (!row) throw new Error("the installation's own row is missing");
  return row.id;
}

function previousKek(settings: Values<typeof apiSettings>) {
  const { previousKek: key, previousKekId: id } = settings;
  if (key && id) return { id, key };
  if (key || id) {
    throw new UsageError(`Set ${apiSettings.previousKek.env} and ${apiSettings.previousKekId.env} together.`);
  }
  return undefined;
}

function missing(name: string): never {
  throw new UsageError(`${name} is not set. \`holdfast up\` sets it by itself; a process run alone needs it.`);
}
