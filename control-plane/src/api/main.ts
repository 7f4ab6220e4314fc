// The api process: everything durable, the public API and the web app. It opens its parts, adds the routes of all modules
// to its listeners, and runs the background jobs that belong to each api.

import { ApiError } from "@holdfast/contracts/errors";
import type { RunningProcess } from "@holdfast/kit/lifecycle";
import type { Values } from "@holdfast/kit/settings";
import { allowedHosts, isAllowedHost, ownOriginCheck } from "@holdfast/service/hosts";
import { createHttpServer } from "@holdfast/service/http";
import type { Log } from "@holdfast/service/log";
import { type OwnProcess, unknownProcess } from "@holdfast/service/log-store/own-process";
import { checkExposure } from "@holdfast/service/settings";
import { version } from "@holdfast/service/version";
import { openAgentReleases } from "../agent-release/release.ts";
import { isUnavailable, type Sql } from "../database/connect.ts";
import { policyOf } from "../drift/policy.ts";
import { openEvidenceSigner } from "../evidence-bundles/archive/keys.ts";
import { openInternalSide } from "../internal-api/open.ts";
import { serveLive } from "../live/socket.ts";
import { type Background, startBackground } from "../mechanisms/background/driver.ts";
import { measureJobs } from "../mechanisms/background/metrics.ts";
import { createAnswerVault } from "../mechanisms/idempotency.ts";
import type { Module } from "../module.ts";
import * as modules from "../modules.ts";
import { createAuthenticator } from "../people/authenticate.ts";
import { openCookies } from "../people/cookies.ts";
import { PROCESS_SILENT_AFTER } from "../platform/presence.ts";
import { recoveryPolicyOf } from "../recovery/settings.ts";
import type { TaskEngine } from "../tasks/engine.ts";
import { originsOf, ownUrl } from "./addresses.ts";
import type { ApiContext, ApiJobContext } from "./context.ts";
import { drain } from "./drain.ts";
import { type ApiParts, openParts } from "./open.ts";
import { readiness } from "./readiness.ts";
import { addInternalRoutes, addNodeRoutes, addPublicRoutes, methodsOf } from "./routes.ts";
import { apiSettings } from "./settings.ts";

const all: readonly Module[] = Object.values(modules);
const liveTopics = all.flatMap((module) => module.liveTopics);
const declaredJobs = all.flatMap((module) => [...module.apiJobs, ...module.workerJobs]);
const wakesWorkers = new Set(all.flatMap(({ workerJobs }) => workerJobs.flatMap(({ wakeOn }) => wakeOn ?? [])));
const apiJobs = Object.values(modules).flatMap((module) => [...module.apiJobs]);

/** In addition to what every process has: what a producer of tasks inside the process uses. */
type RunningApi = RunningProcess & { system: Sql; tasks: TaskEngine };

export async function startApi(
  given: Values<typeof apiSettings>,
  log: Log,
  own: OwnProcess = unknownProcess,
): Promise<RunningApi> {
  checkExposure(given, apiSettings.bind.env);
  let background: Background | undefined;
  const parts = await openParts({ settings: given, log, wakesWorkers, wake: (job) => background?.wake(job) });
  const { settings, system, signals, metrics, nodeSide, news, forgeries, presence } = parts;
  measureJobs(metrics, system, { declared: declaredJobs, silentAfter: PROCESS_SILENT_AFTER });

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
  const context = await createContext(parts, { http: http.app, log, own });
  await addPublicRoutes(context);
  const hosts = allowedHosts(settings);
  const live = serveLive(context, {
    topics: liveTopics,
    signals,
    isAllowedHost: (host) => isAllowedHost(host, hosts),
    refuseForged: http.refuseForged,
  });
  const { http: nodeHttp, addressOf } = nodeSide.listener;
  await addNodeRoutes(nodeSide.listener.api, { ...context, http: nodeHttp, addressOf });
  let pageOrigins: string[] = [];
  const internalSide = await openInternalSide({
    ...{ settings, system, keyring: parts.keyring, news, metrics, log },
    authority: nodeSide.services.authority,
    origins: () => pageOrigins,
    onAnnounced: nodeSide.gatewayAnnounced,
    onForged: (forgery) => forgeries.saw("internal", forgery),
  });
  if (internalSide) await addInternalRoutes(internalSide.api, context);

  const nodePort = await nodeSide.listen();
  const port = await http.listen({ port: settings.port, portSetting: apiSettings.port.env });
  await nodeSide.publish(settings.publicUrl ?? ownUrl(settings, port));
  pageOrigins = originsOf(settings, port);
  // Opened last, so that clients find everything ready.
  const internalPort = await internalSide?.listen();
  const reports = () => background?.reports() ?? {};
  background = startBackground<ApiJobContext & { settings: typeof settings }>({
    jobs: apiJobs,
    context: {
      ...{ ...context, settings, presence, reports, live, nodeUpkeep: nodeSide.upkeep },
      internal: internalSide?.upkeep,
    },
    signals,
    log,
  });
  log.info({ port, node_port: nodePort, version }, "api listens");

  return {
    ports: { public: port, node: nodePort, ...(internalPort === undefined ? {} : { internal: internalPort }) },
    system,
    tasks: parts.tasks,
    async stop() {
      await drain(settings.drainSeconds, { listeners: [http, nodeSide.listener], live, log });
      live.stop();
      await background?.stop();
      await parts.stopWaiting();
      await Promise.all([http.stop(), nodeSide.stop(), internalSide?.stop()]);
      await presence.leave(reports()).catch(() => undefined);
      await parts.close();
    },
  };
}

async function createContext(
  parts: ApiParts,
  { http, log, own }: Pick<ApiContext, "http" | "log" | "own">,
): Promise<ApiContext> {
  const { settings, policies, app, system, signals, tasks, allocations, leases, terminals, executions } = parts;
  const { fleets, failures, notify, jenkins } = parts;
  const id = await installationId(system);
  return {
    policies,
    ...{
      http,
      app,
      system,
      signals,
      tasks,
      allocations,
      leases,
      terminals,
      executions,
      fleets,
      failures,
      notify,
      jenkins,
      log,
      own,
      declaredJobs,
    },
    nodes: parts.nodeSide.services,
    policy: policyOf(settings),
    recovery: recoveryPolicyOf(settings),
    authenticator: createAuthenticator(system, {
      operatorTokenSha256: settings.operatorTokenSha256,
      onTouchFailed: (error) => log.warn({ err: error }, "could not record the last use"),
    }),
    answers: await createAnswerVault(parts.keyring),
    keks: parts.keks,
    evidence: await openEvidenceSigner(parts.keyring),
    installationId: id,
    cookies: openCookies({
      installationId: id,
      secure: settings.tlsCertFile !== undefined || settings.publicUrl?.startsWith("https:") === true,
    }),
    publicUrl: settings.publicUrl,
    workflowQueue: settings.workflowQueue,
    isOwnOrigin: ownOriginCheck(settings),
    agentReleases: openAgentReleases(log),
  };
}

async function installationId(system: Sql): Promise<string> {
  const [row] = await system<{ id: string }[]>`SELECT id FROM installation`;
  if (!row) throw new Error("the installation's own row is missing");
  return row.id;
}
