// The api process: everything durable, the public API and the web app.

import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Endpoint } from "@holdfast/contracts/endpoint";
import { allEndpoints } from "@holdfast/contracts/endpoints/all";
import { ApiError } from "@holdfast/contracts/errors";
import { nodeApiEndpoints } from "@holdfast/contracts/node-endpoints";
import { openApiDocument } from "@holdfast/contracts/openapi";
import { serviceEndpoints } from "@holdfast/contracts/service-endpoints";
import type { RunningProcess } from "@holdfast/kit/lifecycle";
import { UsageError, type Values } from "@holdfast/kit/settings";
import type { Readiness } from "@holdfast/service/health";
import { allowedHosts, isAllowedHost, ownOriginCheck } from "@holdfast/service/hosts";
import { createHttpServer, type HttpServer } from "@holdfast/service/http";
import type { Log } from "@holdfast/service/log";
import { createMetrics } from "@holdfast/service/metrics";
import { listenerUrl } from "@holdfast/service/node-identity/names";
import { checkExposure } from "@holdfast/service/settings";
import { version } from "@holdfast/service/version";
import { loadAllContracts } from "@holdfast/tasks/registry";
import { openAgentReleases } from "../agent-release/release.ts";
import { createAgentRoutes } from "../agent-release/routes.ts";
import { allocationRoutes } from "../allocations/routes.ts";
import { sharingRoutes } from "../allocations/sharing-routes.ts";
import { watchAllocations } from "../allocations/watch.ts";
import { auditForgeries } from "../audit/forgeries.ts";
import { auditRoutes } from "../audit/routes.ts";
import { isUnavailable, openPool, type Sql } from "../database/connect.ts";
import { checkAppLogin, deriveLogins, givenLogins, setUpDatabase } from "../database/logins.ts";
import { pendingMigrations } from "../database/migrate.ts";
import { fleetRoutes } from "../fleet/routes.ts";
import { createFleets } from "../fleet/view.ts";
import { createAnswerVault } from "../idempotency/replay.ts";
import { linkRoutes } from "../links/routes.ts";
import { serveLive } from "../live/socket.ts";
import { memberRoutes } from "../members/routes.ts";
import { openNodeSide } from "../node-api/open.ts";
import type { NodeApi } from "../node-api/route.ts";
import { enrollmentRoutes, enrollmentTokenRoutes } from "../nodes/enrollment-routes.ts";
import { keepHealth } from "../nodes/health.ts";
import { measureLate } from "../nodes/late-certificates.ts";
import { nodeFacingRoutes } from "../nodes/node-routes.ts";
import { nodeRoutes } from "../nodes/routes.ts";
import { organizationRoutes } from "../organizations/routes.ts";
import { createAuthenticator } from "../people/authenticate.ts";
import { openCookies } from "../people/cookies.ts";
import { peopleRoutes } from "../people/routes.ts";
import { sessionRoutes } from "../people/session-routes.ts";
import { ensureFirstOrganization } from "../platform/first-organization.ts";
import { keyRoutes } from "../platform/key-routes.ts";
import { announceReplica } from "../platform/replicas.ts";
import { platformRoutes } from "../platform/routes.ts";
import { projectRoutes } from "../projects/routes.ts";
import { quotaRoutes } from "../quotas/routes.ts";
import { probeHealth } from "../reconcilers/probe-health.ts";
import { openKeyring } from "../sealing/keyring.ts";
import { createNews } from "../services/news.ts";
import { openServiceSide } from "../services/open.ts";
import type { ServiceApi } from "../services/route.ts";
import { openSignals } from "../signals/signals.ts";
import { createTaskEngine, openTaskPools, type TaskEngine } from "../tasks/engine.ts";
import { nodeTaskRoutes } from "../tasks/node-routes.ts";
import { taskRoutes } from "../tasks/routes.ts";
import { openTaskSigner } from "../tasks/signing.ts";
import { openTerminals } from "../terminals/open.ts";
import { selectClosing } from "../terminals/queries.ts";
import { terminalRoutes } from "../terminals/routes.ts";
import { terminalServiceRoutes } from "../terminals/service-routes.ts";
import { tokenRoutes } from "../tokens/routes.ts";
import { type Periodic, runPeriodically } from "../worker/periodic.ts";
import type { ApiContext } from "./context.ts";
import { createPagePolicy } from "./page-policy.ts";
import { apiSettings } from "./settings.ts";
import { serveWebApp } from "./web-app.ts";

const webApp = fileURLToPath(new URL("../../../web/dist", import.meta.url));
const READINESS_DEADLINE_MS = 2_000;
const PROBES_SECONDS = 10;

/** Besides what every process has: what a producer of tasks inside the process works with. */
type RunningApi = RunningProcess & { system: Sql; tasks: TaskEngine };

export async function startApi(settings: Values<typeof apiSettings>, log: Log): Promise<RunningApi> {
  checkExposure(settings, apiSettings.bind.env);
  const { databaseUrl: ownerUrl } = settings;
  const given = givenLogins(settings);
  const kek = { id: settings.kekId, key: settings.kek ?? missing(apiSettings.kek.env) };
  if (ownerUrl && settings.migrateOnStart === "yes") await setUpDatabase({ ownerUrl, logins: given });
  const { appUrl, systemUrl } = given ?? deriveLogins(ownerUrl ?? missing(apiSettings.databaseUrl.env));

  const pool = { max: settings.databasePoolSize, application: "holdfast-api" };
  const app = openPool({ ...pool, url: appUrl, role: "holdfast_app" });
  await checkAppLogin(app);
  const system = openPool({ ...pool, url: systemUrl, role: "holdfast_system" });
  const keyring = await openKeyring(system, { current: kek, previous: previousKek(settings) });
  await ensureFirstOrganization(system);
  const taskPools = openTaskPools({ url: systemUrl, application: "holdfast-api" });
  const replicas = await announceReplica(system, log);
  const signals = await openSignals(system, log, { notifier: taskPools.swift, alone: replicas.alone });
  const signer = await openTaskSigner(system, keyring, { log });
  const types = await loadAllContracts();
  const onTaken = keepHealth(system, log);
  const tasks = createTaskEngine({ pools: taskPools, signals, signer, types, log, onTaken });
  const allocations = watchAllocations({ system, engine: tasks, signals, log });

  const metrics = createMetrics("api");
  measureLate(metrics, system);
  const forgeries = auditForgeries(system, log);
  const nodeSide = await openNodeSide({
    ...{ settings, system, keyring, signals, keys: signer, metrics, log },
    onForged: (forgery) => forgeries.saw("node_api", forgery),
  });

  const news = createNews({ missed: () => selectClosing(system, null), log });
  const terminals = openTerminals({ limits: settings, metrics, system, signals, tell: news.tell, log });

  const http = createHttpServer({
    process: "api",
    exposure: settings,
    log,
    metrics,
    bodyLimit: settings.bodyLimit,
    readiness: () => readiness(system, nodeSide.services.authority !== undefined),
    translateError: (error) => (isUnavailable(error) ? new ApiError("database_unavailable") : undefined),
    methodsOf,
    onForged: (forgery) => forgeries.saw("api", forgery),
  });
  const { staleAfterSeconds } = nodeSide.services;
  const fleets = createFleets({ app, signals, log, staleAfterSeconds });
  const context: ApiContext = {
    http: http.app,
    app,
    system,
    authenticator: createAuthenticator(system, {
      operatorTokenSha256: settings.operatorTokenSha256,
      onTouchFailed: (error) => log.warn({ err: error }, "last use was not recorded"),
    }),
    answers: await createAnswerVault(keyring),
    cookies: openCookies({
      installationId: await installationId(system),
      secure: settings.tlsCertFile !== undefined || settings.publicUrl?.startsWith("https:") === true,
    }),
    tasks,
    allocations,
    log,
    publicUrl: settings.publicUrl,
    isOwnOrigin: ownOriginCheck(settings),
    signals,
    nodes: nodeSide.services,
    fleets,
    agentReleases: openAgentReleases(log),
    terminals,
  };
  addRoutes(context);
  const agentRoutes = createAgentRoutes(context.agentReleases);
  agentRoutes(http.app);
  agentRoutes(nodeSide.listener.http);
  const hosts = allowedHosts(settings);
  const live = serveLive(context, {
    signals,
    isAllowedHost: (host) => isAllowedHost(host, hosts),
    refuseForged: http.refuseForged,
  });
  const { http: nodeHttp, addressOf } = nodeSide.listener;
  addNodeFacingRoutes({ ...context, http: nodeHttp, addressOf }, nodeSide.listener.api);
  let pageOrigins: string[] = [];
  const serviceSide = await openServiceSide({
    ...{ settings, system, keyring, signals, news, metrics, log },
    authority: nodeSide.services.authority,
    origins: () => pageOrigins,
    onAnnounced: nodeSide.gatewayAnnounced,
    onForged: (forgery) => forgeries.saw("internal", forgery),
  });
  if (serviceSide) addServiceRoutes(context, serviceSide.api);
  const nodePort = await nodeSide.listen();
  const port = await http.listen({ port: settings.port, portSetting: apiSettings.port.env });
  await nodeSide.publish(settings.publicUrl ?? ownUrl(settings, port));
  pageOrigins = originsOf(settings, port);
  // Last: whoever asks here finds everything in place.
  const internalPort = await serviceSide?.listen();
  const probing = runProbes(settings, { system, tasks, log });
  log.info({ port, node_port: nodePort, version }, "api listens");

  return {
    ports: { public: port, node: nodePort, ...(internalPort === undefined ? {} : { internal: internalPort }) },
    system,
    tasks,
    async stop() {
      await drain(settings.drainSeconds, { listeners: [http, nodeSide.listener], live, log });
      live.stop();
      await probing.stop();
      // First, so that nobody who waits for a task keeps the listener open.
      await Promise.all([allocations.stop(), tasks.stop(), terminals.watch.stop()]);
      await Promise.all([http.stop(), nodeSide.stop(), serviceSide?.stop()]);
      news.stop();
      forgeries.stop();
      await forgeries.settled();
      signer.stop();
      await Promise.all([signals.stop(), replicas.stop(), fleets.stop()]);
      const pools = [app, system, taskPools.swift, taskPools.durable];
      await Promise.all(pools.map((one) => one.end({ timeout: 5 })));
    },
  };
}

type Drained = Pick<HttpServer, "startDraining" | "stopAccepting">;

/**
 * Lets a load balancer in front go elsewhere before anything is refused. First it hears that this process is not ready,
 * and everything is served as before; then no new connection is taken, and what is open is served to its end.
 */
async function drain(
  seconds: number,
  { listeners, live, log }: { listeners: readonly Drained[]; live: { stop(): void }; log: Log },
): Promise<void> {
  if (seconds === 0) return;
  log.info({ seconds }, "drains before it stops");
  for (const one of listeners) one.startDraining();
  await wait(seconds * 1000);
  live.stop();
  await Promise.all(listeners.map((one) => one.stopAccepting(seconds * 1000)));
}

function runProbes(
  settings: Values<typeof apiSettings>,
  { system, tasks, log }: { system: Sql; tasks: TaskEngine; log: Log },
): Pick<Periodic, "stop"> {
  const { nodeHealthProbeIntervalSeconds: intervalSeconds, nodeHeartbeatStaleSeconds: staleAfterSeconds } =
    settings;
  if (intervalSeconds === 0) return { stop: async () => undefined };
  return runPeriodically({
    name: "probe-health",
    seconds: PROBES_SECONDS,
    log,
    work: async () => void (await probeHealth(system, tasks, { intervalSeconds, staleAfterSeconds, log })),
  });
}

function addRoutes(api: ApiContext): void {
  peopleRoutes(api);
  sessionRoutes(api);
  linkRoutes(api);
  organizationRoutes(api);
  projectRoutes(api);
  memberRoutes(api);
  tokenRoutes(api);
  nodeRoutes(api);
  fleetRoutes(api);
  enrollmentTokenRoutes(api);
  enrollmentRoutes(api);
  taskRoutes(api);
  allocationRoutes(api);
  sharingRoutes(api);
  quotaRoutes(api);
  terminalRoutes(api);
  auditRoutes(api);
  platformRoutes(api);
  keyRoutes(api);
  const document = JSON.stringify(openApiDocument(allEndpoints, { version }));
  api.http.get("/openapi.json", (_request, reply) => reply.type("application/json; charset=utf-8").send(document));
  serveWebApp(api.http, webApp, createPagePolicy(api));
  for (const endpoint of allEndpoints) {
    const url = endpoint.path.replace(/\{(\w+)\}/g, ":$1");
    if (!api.http.hasRoute({ method: endpoint.method, url })) throw new Error(`${endpoint.name} has no handler`);
  }
}

/** What agents may ask, and nothing else: none of it exists on the public listener but enrollment. */
function addNodeFacingRoutes(api: ApiContext, nodeApi: NodeApi): void {
  enrollmentRoutes(api);
  nodeFacingRoutes(nodeApi, api);
  nodeTaskRoutes(nodeApi, api.tasks);
  for (const { name, method, path } of nodeApiEndpoints) {
    const url = path.replace(/\{(\w+)\}/g, ":$1");
    if (!api.http.hasRoute({ method, url })) throw new Error(`${name} has no handler`);
  }
}

/** What other processes of the installation may ask; on the internal listener alone. */
function addServiceRoutes(api: ApiContext, serviceApi: ServiceApi): void {
  terminalServiceRoutes(serviceApi, api);
  for (const { name, method, path } of serviceEndpoints) {
    const url = path.replace(/\{(\w+)\}/g, ":$1");
    if (!serviceApi.http.hasRoute({ method, url })) throw new Error(`${name} has no handler`);
  }
}

/** Where this machine reaches the public listener. */
function ownUrl(settings: Values<typeof apiSettings>, port: number): string {
  const url = new URL(listenerUrl({ bind: settings.bind, url: undefined }, port));
  if (settings.tlsCertFile === undefined) url.protocol = "http:";
  return url.origin;
}

/** Of the pages that this api serves: by each name it answers to. */
function originsOf(settings: Values<typeof apiSettings>, port: number): string[] {
  const scheme = settings.tlsCertFile === undefined ? "http" : "https";
  const own = [...allowedHosts(settings)].map((host) => new URL(`${scheme}://${host}:${port}`).origin);
  return [...new Set([...(settings.publicUrl ? [settings.publicUrl] : []), ...own])];
}

const patterns = allEndpoints.map((endpoint: Endpoint) => ({
  method: endpoint.method,
  pattern: new RegExp(`^${endpoint.path.replace(/\{\w+\}/g, "[^/]+")}$`),
}));

function methodsOf(path: string): string[] {
  return patterns.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method);
}

async function readiness(system: Sql, hasCa: boolean): Promise<Readiness> {
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
    ready: migrations.ok && hasCa,
    checks: {
      ca: hasCa ? { ok: true } : { ok: false, reason: "there are nodes, but not the CA that they trust" },
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
