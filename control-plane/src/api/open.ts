// Opens what an api process works with before it listens: database, keys, signals, the task engine, and the node-facing and internal sides.
// Closed in the reverse order by `close`.

import { UsageError, type Values } from "@holdfast/kit/settings";
import type { Log } from "@holdfast/service/log";
import { createMetrics, type Metrics } from "@holdfast/service/metrics";
import { loadAllContracts } from "@holdfast/tasks/registry";
import { watchAllocations } from "../allocations/watch.ts";
import { openFailureAudit } from "../audit/failures/failures.ts";
import { auditForgeries } from "../audit/forgeries.ts";
import { openPool, type Sql } from "../database/connect.ts";
import { checkAppLogin, configuredLogins, deriveLogins, setUpDatabase } from "../database/logins.ts";
import { openExecutions } from "../executions/engine.ts";
import { createFleets } from "../fleet/view.ts";
import { measureIngressTrust } from "../identity/ingress-trust/measure.ts";
import { createNews } from "../internal-api/news.ts";
import { openJenkins } from "../jenkins/open.ts";
import { openUserDataVault } from "../leases/user-data.ts";
import { watchLeases } from "../leases/watch.ts";
import { type Keks, kekIdsOf } from "../mechanisms/sealing/keks.ts";
import { openKeyring } from "../mechanisms/sealing/keyring.ts";
import { openSignals, type Topic } from "../mechanisms/signals.ts";
import { openNodeSide } from "../node-api/open.ts";
import { measureLate } from "../nodes/identity/late-certificates.ts";
import { keepHealth } from "../nodes/presence/health.ts";
import { openNotify } from "../notify/open.ts";
import { ensureFirstOrganization } from "../platform/first-organization.ts";
import { announceProcess } from "../platform/presence.ts";
import { openPolicies } from "../policy/live.ts";
import { refuseUnknownKeks } from "../secrets/kek/check.ts";
import { secretsForSteps } from "../secrets/use.ts";
import { createTaskEngine, openTaskPools } from "../tasks/engine.ts";
import { openTaskVault } from "../tasks/secrets.ts";
import { openTaskSigner } from "../tasks/signing.ts";
import { openTerminals } from "../terminals/open.ts";
import { selectClosing } from "../terminals/queries.ts";
import { apiSettings } from "./settings.ts";

export type ApiParts = Awaited<ReturnType<typeof openParts>>;

type Options = {
  settings: Values<typeof apiSettings>;
  log: Log;
  /** Starts a turn of a background job now; the jobs run later than these parts are opened. */
  wake(job: string): void;
  /** What jobs of workers wait for: it is sent also while no other api runs. */
  wakesWorkers: ReadonlySet<Topic>;
};

export async function openParts({ settings: given, log, wake, wakesWorkers }: Options) {
  const keks: Keks = { current: currentKek(given), previous: previousKek(given) };
  const { app, system, systemUrl } = await openDatabase(given);
  const { settings, ...policies } = await openPolicies(system, given, log);
  const keyring = await openKeyring(system, keks);
  await refuseUnknownKeks(system, keks);
  await ensureFirstOrganization(system);
  const taskPools = openTaskPools({ url: systemUrl, application: "holdfast-api" });
  const presence = await announceProcess(system, "api", { kekIds: kekIdsOf(keks) });
  const alone = (topic: Topic) => presence.alone() && !wakesWorkers.has(topic);
  const signals = await openSignals(system, log, { notifier: taskPools.swift, alone });
  const signer = await openTaskSigner(system, keyring, { log });
  const types = await loadAllContracts();
  const onTaken = keepHealth(system, log);
  const vault = await openTaskVault(keyring);
  const tasks = createTaskEngine({ pools: taskPools, signals, signer, vault, types, log, onTaken });
  const allocations = watchAllocations({ system, engine: tasks, signals, wake, log });
  const userData = await openUserDataVault(keyring);
  const leases = watchLeases({ system, engine: tasks, signals, limits: settings, vault: userData, wake, log });
  const jenkins = await openJenkins(keyring, settings);

  const metrics: Metrics = createMetrics("api");
  measureLate(metrics, system);
  measureIngressTrust(metrics, system);
  const failures = openFailureAudit(log, () => settings.auditDedupeWindowSeconds);
  const forgeries = auditForgeries(system, log);
  const probe = openPool({ url: systemUrl, role: "holdfast_system", application: "holdfast-api-probe", max: 1 });
  const notify = await openNotify({ settings, system, probe, keyring, signals, metrics, log });
  const nodeSide = await openNodeSide({
    ...{ settings, system, keyring, signals, keys: signer, failures, metrics, log },
    onForged: (forgery) => forgeries.saw("node_api", forgery),
  });
  const news = createNews({
    missed: async () => [...(await selectClosing(system, null)), ...(await executions.announcements.missed())],
    log,
  });
  const executions = await openExecutions({
    ...{ pools: taskPools, keyring, signals, metrics, log, publish: news.publish },
    sign: signer.sign,
    useSecret: secretsForSteps({ system: taskPools.durable, keks, log }),
    selection: settings.agentSelection,
    agentStaleMs: settings.agentStaleMs,
    nodesAllowed: () => settings.nodeExecutions === "on",
    wsUrl: settings.executionWsUrl,
  });
  const terminals = openTerminals({
    ...{ limits: settings, metrics, system, signals, wake, log },
    publish: news.publish,
  });
  const staleAfterSeconds = () => settings.nodeHeartbeatStaleSeconds;
  const fleets = createFleets({ app, signals, log, staleAfterSeconds });
  return {
    ...{
      settings,
      policies,
      app,
      system,
      keks,
      keyring,
      presence,
      signals,
      tasks,
      allocations,
      leases,
      metrics,
      failures,
      forgeries,
    },
    ...{ nodeSide, news, terminals, executions, fleets, notify, jenkins },
    /** Ends waiting requests, which would keep a listener open. */
    stopWaiting: () =>
      Promise.all([allocations, leases, tasks, executions, terminals.watch].map((one) => one.stop())),
    async close() {
      news.stop();
      forgeries.stop();
      await forgeries.settled();
      await Promise.all([signals.stop(), fleets.stop()]);
      const pools = [app, system, probe, taskPools.swift, taskPools.durable];
      await Promise.all(pools.map((one) => one.end({ timeout: 5 })));
    },
  };
}

async function openDatabase(
  settings: Values<typeof apiSettings>,
): Promise<{ app: Sql; system: Sql; systemUrl: string }> {
  const { databaseUrl: ownerUrl } = settings;
  const configured = configuredLogins(settings);
  if (ownerUrl && settings.migrateOnStart === "yes") await setUpDatabase({ ownerUrl, logins: configured });
  const { appUrl, systemUrl } = configured ?? deriveLogins(ownerUrl ?? missing(apiSettings.databaseUrl.env));
  const pool = { max: settings.databasePoolSize, application: "holdfast-api" };
  const app = openPool({ ...pool, url: appUrl, role: "holdfast_app" });
  await checkAppLogin(app);
  return { app, system: openPool({ ...pool, url: systemUrl, role: "holdfast_system" }), systemUrl };
}

function currentKek(settings: Values<typeof apiSettings>) {
  return { id: settings.kekId, key: settings.kek ?? missing(apiSettings.kek.env) };
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
