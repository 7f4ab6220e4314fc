// An agent, whatever it runs on: link, tasks, identity and heartbeats put together. The real agent (main.ts) provides
// files, a host and a log; a simulated one (sim/agent.ts) provides memory and an invented host. All decisions are here
// or below, so both make the same ones.

import type { AgentSetup, Heartbeat, HostFacts, NodeStanding } from "@holdfast/contracts/node/protocol";
import type { HeldRecoveryToken } from "@holdfast/contracts/node/recovery";
import type { VmHostReport } from "@holdfast/contracts/node/vm-host";
import { type DiagnosticReason, isRejection, nodeReason } from "@holdfast/contracts/reasons/node";
import type { VerifierKeyring } from "@holdfast/kit/detached-jws";
import { type Finding, originOf } from "../diagnostics/self-checks.ts";
import type { ExecutorOptions, TaskEvent } from "../executor/executor.ts";
import { describe } from "../executor/outcomes.ts";
import type { Offer } from "../identity/accept-trust.ts";
import type { Attempt, Situation, Way } from "../identity/trials.ts";
import type { Journal } from "../journal/journal.ts";
import type { LinkCalls } from "../link/calls.ts";
import type { Classified } from "../link/failures.ts";
import { createHeartbeatOrder } from "../link/heartbeat-order.ts";
import {
  createLink,
  type Link,
  type LinkOptions,
  type LinkStatus,
  type Offered,
  skewSecondsOf,
} from "../link/loop.ts";
import { createResultWait } from "../link/result-wait.ts";
import { createUpkeep, type Keeper } from "../link/upkeep.ts";
import type { Recoverable, RecoveryHost } from "../recovery/recoveries.ts";
import { type Counters, counterOf, noCounters } from "./counters.ts";
import { createFindings } from "./findings.ts";
import { buildHeartbeat } from "./heartbeat.ts";
import { createTaskPipeline, type TaskPipeline } from "./task-pipeline.ts";

/** The agent's identity and trust: on disk for a real agent, in memory for a simulated one. */
export type AgentIdentity = Keeper &
  Recoverable & {
    verifiers(): VerifierKeyring;
    /** From the response to a heartbeat. Returns what was refused, and why. Throws when it could not be stored. */
    learn(offer: Offer): string[];
  };

export type CoreOptions = Pick<ExecutorOptions, "loadType" | "host" | "log"> & {
  identity: AgentIdentity;
  /** Throws a HostProblem while this host has no usable identity. */
  client: () => LinkCalls;
  /** For one request with other connection settings. */
  clientOver: (way: Way) => Pick<LinkCalls, "heartbeat"> & { close(): void };
  addresses: () => Pick<Situation, "joinedAt" | "fixedUrl">;
  recovery: RecoveryHost;
  /** Undefined while the host cannot store one; retried before every heartbeat. */
  openJournal: () => Journal | undefined;
  facts: () => HostFacts;
  setup: () => Omit<AgentSetup, "urls">;
  /** Of the gateway, configured on this host; undefined: as the profile says. */
  terminalUrl?: string | undefined;
  /** Problems of the host; checked before every heartbeat. */
  checkHost: (link: LinkStatus) => readonly Finding[];
  /** Undefined, or absent: this node is no VM host. */
  vmHost?: () => VmHostReport | undefined;
  heartbeatMs?: number;
  /** How often the host is checked between heartbeats; undefined: never. */
  checkHostMs?: number;
  /** Of pauses before another attempt; in [0, 1). */
  random?: (() => number) | undefined;
  events: CoreEvents;
};

/** Events of the agent, to be recorded, counted or displayed. */
export type CoreEvents = {
  record: (reason: DiagnosticReason, detail: string, correlationId?: string) => void;
  /** Of the last record with each reason: connects a finding in a heartbeat with the audit. */
  correlationIds?: ReadonlyMap<DiagnosticReason, string>;
  onCount?: (name: keyof Counters) => void;
  onTask?: (event: TaskEvent) => void;
  onConnected?: () => void;
  /** Called before other connection settings are tried. */
  onFailure?: (failure: Classified, correlationId: string | undefined) => void;
  onHeartbeat?: (correlationId: string | undefined) => void;
  onAdopted?: (attempt: Attempt) => void;
};

export type AgentCore = {
  /** Until the link is stopped; may be called again afterwards. */
  run(): Promise<void>;
  stopLink(): void;
  status(): LinkStatus;
  /** Opens the journal if the host can store one; retried with every heartbeat. */
  openTasks(): void;
  /** Undefined while there is no journal. */
  tasks(): TaskPipeline | undefined;
  findings(): readonly Finding[];
  /** As it would be sent now. Reads only: two in a row differ in nothing but the time. */
  heartbeat(): Heartbeat;
  heartbeatNow(): Promise<void>;
  /** Sends a heartbeat soon, because what it reports has changed. */
  reportNow(): void;
  /** The newest one that is on disk. */
  recoveryToken(): HeldRecoveryToken | null;
  /** Resolves when no renewal, recovery or trial of new trust is in progress. */
  settled(): Promise<void>;
};

export function createAgentCore(options: CoreOptions): AgentCore {
  const { identity, events, log } = options;
  const { record } = events;
  const startedAt = Date.now();
  const counters: Counters = { ...noCounters };
  const count = (name: keyof Counters) => {
    counters[name] += 1;
    events.onCount?.(name);
  };
  let pipeline: TaskPipeline | undefined;
  const inOrder = createHeartbeatOrder();
  const status = () => link.status();
  const skewSeconds = () => skewSecondsOf(status());
  const holding = () => pipeline?.executor.holding() ?? [];
  const findings = createFindings({ check: () => options.checkHost(status()), record });
  const resultWait = createResultWait(() => ({
    held: holding().length,
    unsent: pipeline?.journal.unsentCount() ?? 0,
  }));

  const openPipeline = () => {
    const journal = pipeline ? undefined : options.openJournal();
    if (!journal) return;
    if (journal.damage) record("task_result_failed", journal.damage);
    pipeline = createTaskPipeline({
      ...{ nodeId: identity.nodeId, journal, loadType: options.loadType, host: options.host, log },
      ...{ client: options.client, verifiers: identity.verifiers, refreshVerifiers: () => link.heartbeatNow() },
      ...{ skewSeconds, record, resultWait },
      onResultsWait: findings.resultsWait,
      onDeliveryFailed: () => count("results_failed"),
      count: (event) => {
        count(counterOf[event]);
        events.onTask?.(event);
      },
    });
  };

  const upkeep = createUpkeep({
    ...{ keeper: identity, addresses: options.addresses, recovery: options.recovery },
    ...{ connected: () => status().connected, skewSeconds, count, record, random: options.random },
    request: async (way) => {
      const client = options.clientOver(way);
      try {
        await client.heartbeat({ ...heartbeatOver(way), holding: holding() });
      } finally {
        client.close();
      }
    },
    renew: (csr) => options.client().renew(csr),
    onAdopted: (attempt) => {
      record("process_alive", `adopted: ${attempt.key}`);
      events.onAdopted?.(attempt);
      if (!status().connected) link.retryNow();
    },
    onRecovered: () => link.retryNow(),
    onTrustRefused: findings.trustRefused,
  });

  const heartbeatOver = ({ identity: { certificate }, profile, apiUrl }: Omit<Way, "roots">) =>
    buildHeartbeat({
      ...{ now: Date.now(), startedAt, facts: options.facts(), certificate },
      renewalDueAt: upkeep.renewalDueAt() ?? certificate.notAfter,
      agent: { ...identity.agent(), profile },
      setup: { ...options.setup(), urls: urlsOf({ profile, apiUrl }, options.terminalUrl) },
      recovery: upkeep.recoveryToken(),
      running: pipeline?.executor.running() ?? 0,
      unsentResults: pipeline?.journal.unsentCount() ?? 0,
      findings: findings.current(),
      correlationIds: events.correlationIds,
      ...{ counters, vmHost: options.vmHost?.() },
    });
  const heartbeat = () => heartbeatOver(identity.present());

  const learn = ({ recovery, ...offer }: Offered) => {
    upkeep.learnToken(recovery);
    try {
      findings.trustRefused(identity.learn(offer));
    } catch (error) {
      // It is in force anyway; after a restart the server offers it again.
      log.warn("could not write changed trust to disk", { error: describe(error) });
    }
  };
  const onFailure: LinkOptions["onFailure"] = (failure, { correlationId, serial }) => {
    count("polls_failed");
    if (isRejection(failure.reason)) count("identity_rejections");
    const { reason, detail } = causeOf(failure, findings.current());
    record(reason, detail, correlationId);
    events.onFailure?.(failure, correlationId);
    upkeep.afterFailure(failure, serial);
  };
  const onStanding = ({ status, reason }: NodeStanding) => {
    if (status === "quarantined") record("node_quarantined", reason ?? "no reason given");
    else record("process_alive", `the node is ${status}${reason ? `: ${reason}` : ""}`);
  };

  const openLink = () =>
    createLink({
      ...{ heartbeatMs: options.heartbeatMs, client: options.client, heartbeat, inOrder, holding, learn },
      serial: () => upkeep.certificate()?.serial,
      ...{ onFailure, onStanding, resultsSent: resultWait.sent, random: options.random },
      beforeHeartbeat: () => {
        openPipeline();
        findings.refresh(upkeep.findings());
      },
      room: () => pipeline?.executor.room() ?? 0,
      cancel: (taskIds) => pipeline?.executor.cancel(taskIds) ?? 0,
      offer: (offers) => pipeline?.offer(offers) ?? 0,
      onConnected: () => {
        events.onConnected?.();
        pipeline?.outbox.reconnected();
      },
      onHeartbeat: (correlationId) => {
        events.onHeartbeat?.(correlationId);
        upkeep.afterHeartbeat();
        pipeline?.executor.pump();
        pipeline?.outbox.poke();
      },
    });
  let link: Link = openLink();
  let ran = false;

  /** What the host's self-checks find is reported at once, not with the next heartbeat. */
  const checkHost = () => {
    if (findings.refresh(upkeep.findings())) link.reportNow();
  };

  return {
    async run() {
      if (ran) link = openLink();
      ran = true;
      const { checkHostMs } = options;
      const checks = checkHostMs === undefined ? undefined : setInterval(checkHost, checkHostMs).unref();
      await link.run();
      clearInterval(checks);
    },
    stopLink() {
      link.stop();
      upkeep.stop();
    },
    status,
    openTasks: openPipeline,
    tasks: () => pipeline,
    findings: findings.current,
    heartbeat,
    heartbeatNow: () => link.heartbeatNow(),
    reportNow: () => link.reportNow(),
    recoveryToken: upkeep.recoveryToken,
    settled: upkeep.settled,
  };
}

/** In use; the gateway's is the profile's, unless this host has one of its own. */
function urlsOf(
  { profile, apiUrl }: Pick<Way, "profile" | "apiUrl">,
  own: string | undefined,
): AgentSetup["urls"] {
  const terminal = own ?? profile.endpoints["node_terminal"];
  return { node_api: originOf(apiUrl), node_terminal: terminal === undefined ? null : originOf(terminal) };
}

/** What follows from an address that is not the profile's is recorded under that cause, not as a problem of its own. */
function causeOf({ reason, detail }: Classified, findings: readonly Finding[]): Finding {
  const misplaced = findings.find((one) => one.reason === "endpoint_profile_drift");
  if (!misplaced || !nodeReason(reason)?.dependsOn.includes(misplaced.reason)) return { reason, detail };
  return { ...misplaced, detail: `${misplaced.detail}; ${reason}: ${detail}` };
}
