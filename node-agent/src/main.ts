// Starts the agent: puts its parts together and lets the link run. The agent lives as long as its
// process: no server, no network, no disk and no identity are reasons to wait and to say so, never to
// end. Only what a person must decide first ends it: a wrong setting, or a machine that never joined.

import { randomUUID } from "node:crypto";
import { type DiagnosticReason, isRejection } from "@holdfast/contracts/reasons/node";
import { isOfNodeStream } from "@holdfast/contracts/reasons/terminal";
import type { RunningProcess } from "@holdfast/kit/lifecycle";
import type { Values } from "@holdfast/kit/settings";
import { openDiagnostics } from "./diagnostics/ring.ts";
import { type Finding, selfCheck } from "./diagnostics/self-checks.ts";
import { createExecutor, type TaskEvent, type TaskExecutor } from "./executor/executor.ts";
import { describe } from "./executor/outcomes.ts";
import type { LoadedType } from "./executor/run.ts";
import { loadTaskType } from "./executor/task-types.ts";
import { detectHost } from "./host/facts.ts";
import { HostProblem, stateFiles } from "./identity/state-directory.ts";
import type { Way } from "./identity/trials.ts";
import { type Journal, openJournal } from "./journal/journal.ts";
import { createAnswering } from "./link/answering.ts";
import { retryDelay } from "./link/decisions.ts";
import { createDiagnosticsUpload } from "./link/diagnostics-upload.ts";
import type { Classified } from "./link/failures.ts";
import { type Counters, describeAgent, noCounters } from "./link/heartbeat.ts";
import { createLink, quickestRoundTrip, skewSecondsOf } from "./link/loop.ts";
import { createOutbox, type Outbox } from "./link/outbox.ts";
import { openSession } from "./link/session.ts";
import { createUpkeep } from "./link/upkeep.ts";
import { openLocalListener } from "./local/listener.ts";
import { createLog, type Log } from "./log.ts";
import { createMetrics } from "./metrics.ts";
import type { agentSettings } from "./settings.ts";
import { openTerminals } from "./terminals/lazily.ts";
import { agentVersion } from "./version.ts";

export type AgentSettings = Values<typeof agentSettings>;

/** What needs the journal: there is none while the disk cannot take one. */
type Work = { journal: Journal; executor: TaskExecutor; outbox: Outbox };

const STOP = { linkMs: 1_000, tasksMs: 4_000, deliveryMs: 1_000 };
/** Long enough for a person to see it: whoever changes answers may do so once. */
const REFUSAL_SHOWN_MS = 3_600_000;
/** A loop that has not come round for so long is dead: every step of it is bounded well below. */
const DEAD_AFTER_MS = 90_000;

/** `isAlive`: its work goes on, whether or not the server answers. */
export type RunningAgent = RunningProcess & { isAlive(): boolean };

export type AgentOptions = {
  log?: Log;
  loadType?: (name: string) => Promise<LoadedType | undefined>;
  /** Told in one line how it is, when that changes. */
  onStatus?: (text: string) => void;
};

export async function startAgent(settings: AgentSettings, options: AgentOptions = {}): Promise<RunningAgent> {
  const startedAt = Date.now();
  const instanceId = randomUUID();
  const log = options.log ?? createLog({ level: settings.logLevel, fields: { instance_id: instanceId } });
  const metrics = createMetrics();
  const counters: Counters = { ...noCounters };
  const count = (name: keyof Counters) => {
    counters[name] += 1;
    metrics.count(`${name}_total`);
  };

  const files = stateFiles(settings.stateDir);
  const diagnostics = openDiagnostics(settings.stateDir, { log, instanceId });
  /** Of the last record with each reason: a finding that rides on heartbeats is found by it in the audit. */
  const correlationIds = new Map<DiagnosticReason, string>();
  const record = (reason: DiagnosticReason, detail: string, correlationId?: string) => {
    const id = diagnostics.record(reason, detail, correlationId);
    if (id !== null) correlationIds.set(reason, id);
    if (link.status().connected) upload.soon();
  };
  const host = detectHost({
    agentVersion,
    stateDir: settings.stateDir,
    advertisedAddress: settings.advertiseAddress ?? null,
  });
  const session = openSession({ files, apiUrl: settings.nodeApiUrl, instanceId, bootId: host.bootId });
  let findings: Finding[] = [];
  let work: Work | undefined;
  /** Why results wait; what it says rides on heartbeats, which may get through all the same. */
  let undelivered: Finding | undefined;
  /** What was last offered as trust and refused. */
  let refusedTrust: (Finding & { until: number }) | undefined;
  /** Of the tasks that were offered and not settled yet, by their ids. */
  const correlations = new Map<string, string>();
  const correlationOf = (taskIds: string[]) => taskIds.map((id) => correlations.get(id)).find(Boolean);
  const answering = createAnswering(() => ({
    held: work?.executor.holding().length ?? 0,
    unsent: work?.journal.unsentCount() ?? 0,
  }));

  /** A refusal changes nothing; it is written down, and is a finding of the heartbeats of the next hour. */
  const refuseTrust = (refused: readonly string[]) => {
    if (refused.length === 0) return;
    const detail = refused.join("; ");
    record("trust_update_refused", detail);
    refusedTrust = { reason: "trust_update_refused", detail, until: performance.now() + REFUSAL_SHOWN_MS };
  };

  const skewSeconds = () => skewSecondsOf(link.status());
  const upkeep = createUpkeep({
    keeper: session,
    addresses: () => ({ joinedAt: session.agent().api_url, fixedUrl: settings.nodeApiUrl }),
    connected: () => link.status().connected,
    skewSeconds,
    request: async (way) => {
      const client = session.clientOver(way);
      try {
        await client.heartbeat({ ...heartbeatOver(way), holding: work?.executor.holding() ?? [] });
      } finally {
        client.close();
      }
    },
    renew: (csr) => session.client().renew(csr),
    onAdopted: ({ key, change: { identity } }) => {
      record("process_alive", `adopted: ${key}`);
      if (identity) {
        const { serial, notAfter } = identity.certificate;
        log.info("certificate renewed", { serial, not_after: new Date(notAfter).toISOString() });
      }
      if (!link.status().connected) link.retryNow();
    },
    onFailure: record,
    onRenewalFailure: (reason, detail) => {
      count("renewals_failed");
      record(reason, `renewing the certificate failed: ${detail}`);
    },
    onTrustRefused: refuseTrust,
  });
  const upload = createDiagnosticsUpload({
    diagnostics,
    send: (records) => session.client().diagnostics(records),
  });

  const terminals = openTerminals({
    stateDir: settings.stateDir,
    nodeId: session.nodeId,
    instanceId,
    bootId: host.bootId,
    gateway: () => ({ set: settings.nodeTerminalUrl, told: session.agent().profile.endpoints["node_terminal"] }),
    credentials: session.credentials,
    lookup: session.lookup,
    refreshProfile: () => void link.heartbeatNow(),
    onFailure: (code, detail, correlationId) => {
      metrics.countOne("terminal_failures_total", code);
      record(reasonOfTerminal(code), `${code}: ${detail}`, correlationId);
    },
    onRetry: (code, detail, correlationId) => record(reasonOfTerminal(code), `${code}: ${detail}`, correlationId),
  });

  const openWork = () => {
    if (work) return;
    try {
      const journal = openJournal(settings.stateDir);
      if (journal.damage) record("task_result_failed", journal.damage);
      work = startWork(journal);
    } catch (error) {
      // Without a journal no task may begin; the findings of the next heartbeat say so.
      if (!(error instanceof HostProblem)) throw error;
      record(error.reason, error.message);
    }
  };

  const startWork = (journal: Journal): Work => {
    const outbox = createOutbox({
      journal,
      post: (results) => session.client().results(results),
      onFailure: (failure, failures, taskIds) => {
        count("results_failed");
        const correlationId = correlationOf(taskIds);
        undelivered = { reason: "task_result_failed", detail: `${failure.reason}: ${failure.detail}` };
        record(undelivered.reason, undelivered.detail, correlationId);
        answering.postponed();
        return retryDelay({ ...failure, failures }, Math.random());
      },
      onSettled: (settled) => {
        undelivered = undefined;
        for (const { task_id, verdict } of settled) {
          correlations.delete(task_id);
          if (verdict !== "accepted") log.info(`result is ${verdict}`, { task_id });
        }
        work?.executor.pump();
        answering.settled();
      },
      onRefused: (taskIds, why) =>
        record(
          "task_result_failed",
          `the server refused the form of ${taskIds.join(", ")}: ${why}`,
          correlationOf(taskIds),
        ),
      onGivenUp: ({ task_id }, why) =>
        record("task_result_failed", `the server takes no result of ${task_id}: ${why}`),
    });
    const executor = createExecutor({
      nodeId: session.nodeId,
      journal,
      loadType: options.loadType ?? loadTaskType,
      verifiers: session.verifiers,
      refreshVerifiers: () => link.heartbeatNow(),
      host: () => {
        const { capabilities, account } = host.hostFacts();
        const { profile } = session.agent();
        return { stateDir: settings.stateDir, profile, capabilities, account, terminals };
      },
      now: Date.now,
      skewSeconds,
      sendProgress: (taskId, report) => session.client().progress(taskId, report),
      resultReady: outbox.poke,
      volatile: outbox.volatile,
      record,
      count: (event) => count(counterOf[event]),
      log,
    });
    return { journal, executor, outbox };
  };

  /** What is new among the findings is written down; all of them ride on the next heartbeat. */
  const check = () => {
    const before = new Set(findings.map((one) => one.reason));
    const found = selfCheck({
      stateDir: settings.stateDir,
      apiUrl: session.apiUrl(),
      diskPressurePercent: settings.diskPressurePercent,
      clockSkewSeconds: skewSeconds(),
      roundTripMs: quickestRoundTrip(link.status()),
      diagnosticsProblem: diagnostics.problem(),
      now: Date.now(),
    });
    for (const { reason, detail } of found) if (!before.has(reason)) record(reason, detail);
    if (refusedTrust && refusedTrust.until < performance.now()) refusedTrust = undefined;
    const others = [undelivered, refusedTrust].filter((one) => one !== undefined);
    findings = [...found, ...upkeep.findings(), ...others];
    const over = [...before].filter((reason) => !findings.some((one) => one.reason === reason));
    if (over.length > 0) record("process_alive", `no longer found: ${over.join(", ")}`);
  };

  const onFailure = (failure: Classified, correlationId: string | undefined) => {
    log.debug("request failed", { correlation_id: correlationId });
    count("polls_failed");
    if (isRejection(failure.reason)) count("identity_rejections");
    metrics.set("connection_up", 0);
    record(failure.reason, failure.detail, correlationId);
    options.onStatus?.(`not connected: ${failure.reason}`);
    const doubted = isRejection(failure.reason) || failure.reason === "server_tls_untrusted";
    const joinedAgain = doubted && session.reconsider();
    const isOver = failure.reason === "identity_revoked" || failure.reason === "identity_retired";
    if (isOver && !joinedAgain) terminals.endAll();
    if (failure.reason !== "edge_rate_limited") upkeep.afterFailure();
  };

  const heartbeatOver = ({ identity: { certificate }, profile }: Pick<Way, "identity" | "profile">) =>
    describeAgent({
      now: Date.now(),
      startedAt,
      facts: host.hostFacts(),
      certificate,
      renewalDueAt: upkeep.renewalDueAt() ?? certificate.notAfter,
      agent: { ...session.agent(), profile },
      running: work?.executor.running() ?? 0,
      unsentResults: work?.journal.unsentCount() ?? 0,
      findings,
      correlationIds,
      counters,
    });

  const link = createLink({
    heartbeatMs: settings.heartbeatSeconds * 1000,
    client: () => session.client(),
    heartbeat: () => {
      openWork();
      check();
      return heartbeatOver(session.present());
    },
    holding: () => work?.executor.holding() ?? [],
    room: () => work?.executor.room() ?? 0,
    cancel: (taskIds) => work?.executor.cancel(taskIds) ?? 0,
    offer: (offers) => {
      for (const { task_id, correlation_id } of offers) correlations.set(task_id, correlation_id);
      return work?.executor.offer(offers) ?? 0;
    },
    answered: answering.answered,
    learn: (offer) => {
      try {
        refuseTrust(session.learn(offer));
      } catch (error) {
        // It is in force all the same; after a restart the server offers it again.
        log.warn("changed trust is not on disk", { error: describe(error) });
      }
    },
    onFailure,
    onConnected: () => {
      metrics.set("connection_up", 1);
      record("process_alive", `connected to ${session.apiUrl()}`);
      options.onStatus?.(`connected to ${session.apiUrl()} as ${session.agent().node_name}`);
      work?.outbox.reconnected();
    },
    onStanding: ({ status, reason }) => {
      if (status === "quarantined") record("node_quarantined", reason ?? "no reason given");
      else record("process_alive", `the node is ${status}${reason ? `: ${reason}` : ""}`);
    },
    onHeartbeat: (correlationId) => {
      log.debug("heartbeat accepted", { correlation_id: correlationId });
      metrics.set("last_heartbeat_timestamp_seconds", Date.now() / 1000);
      metrics.set("clock_skew_seconds", (link.status().skew?.offset ?? 0) / 1000);
      metrics.set("certificate_expires_seconds", (session.identity()?.certificate.notAfter ?? 0) / 1000);
      upkeep.afterHeartbeat();
      work?.executor.pump();
      work?.outbox.poke();
      upload.now();
    },
  });

  const isAlive = () => performance.now() - link.status().lastStepAt < DEAD_AFTER_MS;

  openWork();
  const listener = await openLocalListener(
    {
      ...{ bind: settings.bind, port: settings.port },
      onTaken: (why) => log.warn(why),
      onForged: (detail) => record("certificate_header_refused", detail),
    },
    {
      healthz: () => {
        const { connected, standing, lastHeartbeatAt, problem } = link.status();
        return {
          ok: isAlive(),
          connected,
          standing: standing ?? null,
          last_heartbeat_at: lastHeartbeatAt === undefined ? null : new Date(lastHeartbeatAt).toISOString(),
          problem: problem?.reason ?? null,
          findings: findings.map(({ reason }) => reason),
        };
      },
      capacity: () => {
        const { cpus, memory_bytes, memory_free_bytes } = host.hostFacts();
        const running = work?.executor.running() ?? 0;
        return { cpus, memory_bytes, memory_free_bytes, running, room: work?.executor.room() ?? 0 };
      },
      metrics: () => {
        metrics.set("tasks_running", work?.executor.running() ?? 0);
        metrics.set("terminals_open", terminals.count());
        metrics.set("results_unsent", work?.journal.unsentCount() ?? 0);
        return metrics.text();
      },
    },
  );
  terminals.resume();
  const ran = link.run();
  log.info("agent started", { node_id: session.nodeId, api: session.apiUrl(), port: listener.port });

  return {
    ports: { local: listener.port },
    isAlive,
    async stop() {
      link.stop();
      upload.stop();
      // A heartbeat under way may take its time to fail; closing the connections ends it.
      await Promise.race([ran, new Promise((resolve) => setTimeout(resolve, STOP.linkMs).unref())]);
      await work?.executor.stop(STOP.tasksMs);
      terminals.stop();
      await work?.outbox.flush(STOP.deliveryMs);
      work?.outbox.stop();
      await upkeep.settled();
      await listener.close();
      session.close();
      await work?.journal.close();
      diagnostics.close();
    },
  };
}

const counterOf: Record<TaskEvent, keyof Counters> = {
  started: "tasks_started",
  succeeded: "tasks_succeeded",
  failed: "tasks_failed",
  refused: "tasks_refused",
};

const reasonOfTerminal = (code: string): DiagnosticReason =>
  isOfNodeStream(code) ? "terminal_gateway_unreachable" : "terminal_failed";
