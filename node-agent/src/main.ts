// Starts the agent of this machine: assembles its parts and runs them. A missing server, network, disk or identity never
// ends the agent: it waits and reports the problem. Only what a person must fix first ends it: a wrong setting, or a
// machine that never joined.

import { randomUUID } from "node:crypto";
import { VM_HOST } from "@holdfast/contracts/node/vm-host-capability";
import type { RunningProcess } from "@holdfast/kit/lifecycle";
import type { Values } from "@holdfast/kit/settings";
import { type AgentCore, createAgentCore } from "./core/agent-core.ts";
import { createHistory } from "./diagnostics/history.ts";
import { openDiagnostics } from "./diagnostics/ring.ts";
import { rootUsedPercent, selfCheck } from "./diagnostics/self-checks.ts";
import { agentEvents } from "./events.ts";
import type { LoadedType } from "./executor/run.ts";
import { loadTaskType } from "./executor/task-types.ts";
import { watchAdvertised } from "./host/advertised-address.ts";
import { detectHost } from "./host/facts.ts";
import { watchInstallation } from "./host/installation.ts";
import { sourceAddress } from "./host/source-address.ts";
import { HostProblem, stateFiles } from "./identity/state-directory.ts";
import { openJournal } from "./journal/journal.ts";
import { quickestRoundTrip, skewSecondsOf } from "./link/loop.ts";
import { openSession, readKnownAgent } from "./link/session.ts";
import type { LinkTimes } from "./link/times.ts";
import { openLocalListener } from "./local/listener.ts";
import { localPages } from "./local/pages.ts";
import { createLog, type Log } from "./log.ts";
import { createMetrics } from "./metrics.ts";
import { recoveredIn } from "./recovery/state.ts";
import { openRecoveryFile } from "./recovery/state-file.ts";
import type { agentSettings } from "./settings.ts";
import { reasonOfTerminalFailure } from "./terminals/failures.ts";
import { createTerminalsOnDemand } from "./terminals/on-demand.ts";
import { agentVersion } from "./version.ts";
import { detectVmHost } from "./vms/detect.ts";

export type AgentSettings = Values<typeof agentSettings>;

const STOP = { linkMs: 1_000, tasksMs: 4_000, deliveryMs: 1_000 };
const CHECK_HOST_MS = 20_000;
/** A loop without a new round for this long is stuck: every step has a much shorter time limit. */
const DEAD_AFTER_MS = 90_000;

/** `isAlive`: the loop runs, whether or not the server responds. */
export type RunningAgent = RunningProcess & { isAlive(): boolean };

export type AgentOptions = {
  log?: Log;
  loadType?: (name: string) => Promise<LoadedType | undefined>;
  /** Called with one line when the state of the connection changes. */
  onStatus?: (text: string) => void;
  /** Of the link, where they differ from the usual ones. */
  linkTimes?: Partial<LinkTimes>;
  /** How often the host is checked between heartbeats. */
  checkHostMs?: number;
  /** Of pauses before another attempt; in [0, 1). */
  random?: () => number;
};

export async function startAgent(settings: AgentSettings, options: AgentOptions = {}): Promise<RunningAgent> {
  const { stateDir, nodeApiUrl } = settings;
  const instanceId = randomUUID();
  const log = options.log ?? createLog({ level: settings.logLevel, fields: { instance_id: instanceId } });
  const metrics = createMetrics();
  const diagnostics = openDiagnostics(stateDir, { log, instanceId });
  const vmHost = detectVmHost(settings);
  const host = detectHost({
    ...{ agentVersion, stateDir, advertisedAddress: settings.advertiseAddress ?? null },
    capabilities: vmHost.setup ? [VM_HOST] : [],
  });
  const { bootId } = host;
  const files = stateFiles(stateDir);
  const recovery = openRecoveryFile(files, readKnownAgent(files).node_id);
  const session = openSession({
    ...{ files, apiUrl: nodeApiUrl, instanceId, bootId },
    ...{ link: settings.link, times: options.linkTimes, recovered: recoveredIn(recovery.read()) },
    recovery: { apiUrl: settings.recoveryApiUrl, caPath: settings.recoveryCaPath },
  });
  const installation = watchInstallation({ stateDir, program: process.argv[1] ?? "" });
  const history = createHistory({ diagnostics, send: (records) => session.client().diagnostics(records) });
  const { record } = history;

  const terminals = createTerminalsOnDemand({
    ...{ stateDir, nodeId: session.nodeId, instanceId, bootId },
    gateway: () => ({
      configured: settings.nodeTerminalUrl,
      offered: session.agent().profile.endpoints["node_terminal"],
    }),
    credentials: session.credentials,
    lookup: session.lookup,
    refreshProfile: () => void core.heartbeatNow(),
    onFailure: (code, detail, correlationId) => {
      metrics.countOne("terminal_failures_total", code);
      record(reasonOfTerminalFailure(code), `${code}: ${detail}`, correlationId);
    },
    onRetry: (code, detail, correlationId) =>
      record(reasonOfTerminalFailure(code), `${code}: ${detail}`, correlationId),
  });

  if (vmHost.problem) log.warn("this host runs no VMs", { problem: vmHost.problem });
  const vms =
    vmHost.setup &&
    (await (
      await import("./vms/on-host.ts")
    ).openVmHost(vmHost.setup, {
      ...{ stateDir, bootId, log, family: host.hostFacts().os.family },
      onChange: () => core.reportNow(),
      takeUserData: (vmId) => session.client().vmUserData(vmId),
    }));

  const core: AgentCore = createAgentCore({
    identity: session,
    client: session.client,
    clientOver: session.clientOver,
    addresses: () => ({ joinedAt: session.agent().api_url, fixedUrl: nodeApiUrl }),
    recovery: {
      ...{ store: recovery, path: session.recoveryPath, instanceId, bootId },
      givenToken: settings.recoveryToken,
    },
    openJournal: () => journalIn(stateDir, record),
    loadType: options.loadType ?? loadTaskType,
    host: () => {
      const { capabilities, account } = host.hostFacts();
      return { stateDir, profile: session.agent().profile, capabilities, account, terminals, vms };
    },
    facts: host.hostFacts,
    setup: () => ({
      ...installation(),
      source_address: sourceAddress(session.link()?.localAddress),
      ...{ provider: settings.provider ?? null, network_side: settings.networkSide ?? null },
      root_disk: rootDisk(settings.diskPressurePercent),
    }),
    terminalUrl: settings.nodeTerminalUrl,
    vmHost: () => vms?.report(),
    checkHost: (link) =>
      selfCheck({
        ...{ stateDir, apiUrl: session.apiUrl(), diskPressurePercent: settings.diskPressurePercent },
        clockSkewSeconds: skewSecondsOf(link),
        roundTripMs: quickestRoundTrip(link),
        diagnosticsProblem: diagnostics.problem(),
        unsaved: session.unsaved()?.identity,
        now: Date.now(),
      }),
    heartbeatMs: settings.heartbeatSeconds * 1000,
    checkHostMs: options.checkHostMs ?? CHECK_HOST_MS,
    random: options.random,
    log,
    events: agentEvents({
      ...{ history, session, metrics, log, core: () => core },
      endTerminals: terminals.endAll,
      onStatus: options.onStatus,
    }),
  });

  const advertised = watchAdvertised(settings.advertiseAddress, log);
  const isAlive = () => performance.now() - core.status().lastStepAt < DEAD_AFTER_MS;
  void vms?.start().catch((error: Error) => log.error("VMs cannot run here", { error: error.message }));
  core.openTasks();
  const listener = await openLocalListener(
    {
      ...{ bind: settings.bind, port: settings.port },
      onTaken: (why) => log.warn(why),
      onForged: (detail) => record("certificate_header_refused", detail),
    },
    localPages({
      ...{ core, host, metrics, isAlive, terminals, link: session.link },
      ...{ vmHost: () => vms?.report(), advertisedProblem: advertised.problem },
    }),
  );
  void advertised.compare(listener);
  terminals.resume();
  const ran = core.run();
  const steps =
    settings.executions === "on"
      ? (await import("./execution/of-node.ts")).runStepsAsNode({
          ...{ stateDir, name: host.hostFacts().hostname, log, random: options.random },
          pair: (body) => session.client().pairNode(body),
        })
      : undefined;
  log.info("agent started", { node_id: session.nodeId, api: session.apiUrl(), port: listener.port });

  return {
    ports: { local: listener.port },
    isAlive,
    async stop() {
      await steps?.stop();
      core.stopLink();
      history.stop();
      // A heartbeat in progress may take long to fail; closing the connections ends it.
      await Promise.race([ran, new Promise((resolve) => setTimeout(resolve, STOP.linkMs).unref())]);
      const tasks = core.tasks();
      await tasks?.executor.stop(STOP.tasksMs);
      terminals.stop();
      vms?.stop();
      await tasks?.outbox.flush(STOP.deliveryMs);
      tasks?.outbox.stop();
      await core.settled();
      await listener.close();
      session.close();
      await tasks?.journal.close();
      diagnostics.close();
      recovery.close();
    },
  };
}

function rootDisk(pressure_percent: number) {
  const used = rootUsedPercent();
  return used === undefined ? null : { used_percent: Math.floor(used), pressure_percent };
}

/** Without a journal no task may start; the findings of the next heartbeat report it. */
function journalIn(stateDir: string, record: (reason: HostProblem["reason"], detail: string) => void) {
  try {
    return openJournal(stateDir);
  } catch (error) {
    if (!(error instanceof HostProblem)) throw error;
    record(error.reason, error.message);
    return undefined;
  }
}
