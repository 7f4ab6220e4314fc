// What the api process uses to serve requests: created once at start and passed to every module.

import type { IncomingMessage } from "node:http";
import type { EnvironmentProfile } from "@holdfast/contracts/node/protocol";
import type { OwnOriginCheck } from "@holdfast/service/hosts";
import type { Log } from "@holdfast/service/log";
import type { OwnProcess } from "@holdfast/service/log-store/own-process";
import type { FastifyInstance } from "fastify";
import type { AgentReleases } from "../agent-release/release.ts";
import type { Allocations } from "../allocations/watch.ts";
import type { FailureAudit } from "../audit/failures/failures.ts";
import type { Sql } from "../database/connect.ts";
import type { Policy } from "../drift/classify/derive.ts";
import type { EvidenceSigner } from "../evidence-bundles/archive/keys.ts";
import type { ExecutionEngine } from "../executions/engine.ts";
import type { Fleets } from "../fleet/view.ts";
import type { Authority } from "../identity/authority.ts";
import type { IssuanceGate } from "../identity/issuance-gate.ts";
import type { InternalUpkeep } from "../internal-api/upkeep.ts";
import type { Jenkins } from "../jenkins/open.ts";
import type { Leases } from "../leases/watch.ts";
import type { JobReports } from "../mechanisms/background/report.ts";
import type { DeclaredJob } from "../mechanisms/background/stored.ts";
import type { AnswerVault } from "../mechanisms/idempotency.ts";
import type { Keks } from "../mechanisms/sealing/keks.ts";
import type { Signals } from "../mechanisms/signals.ts";
import type { NodeDirectory } from "../nodes/directory/standings.ts";
import type { Notify } from "../notify/open.ts";
import type { Authenticator } from "../people/authenticate.ts";
import type { Cookies } from "../people/cookies.ts";
import type { Presence } from "../platform/presence.ts";
import type { Policies } from "../policy/live.ts";
import type { RecoveryPolicy } from "../recovery/settings.ts";
import type { TaskEngine } from "../tasks/engine.ts";
import type { TaskSigner } from "../tasks/signing.ts";
import type { Terminals } from "../terminals/open.ts";

export type ApiContext = {
  http: FastifyInstance;
  /** The client's address, on a listener where the connection does not have it. */
  addressOf?: (request: IncomingMessage) => string;
  /** Row-level security confines it to one organization at a time; use it through `withOrg`. */
  app: Sql;
  /** Sees all organizations: sign-in and platform routes only. */
  system: Sql;
  authenticator: Authenticator;
  answers: AnswerVault;
  /** What secrets are sealed with. */
  keks: Keks;
  cookies: Cookies;
  tasks: TaskEngine;
  allocations: Allocations;
  leases: Leases;
  /** Access to Jenkins controllers. */
  jenkins: Jenkins;
  log: Log;
  /** Sums repeated failures up in the audit. */
  failures: FailureAudit;
  publicUrl: string | undefined;
  /** Whether a browser's request comes from a page that this api serves. */
  isOwnOrigin: OwnOriginCheck;
  signals: Signals;
  nodes: NodeServices;
  /** By which nodes are classified. */
  policy: Policy;
  recovery: RecoveryPolicy;
  policies: Policies;
  fleets: Fleets;
  agentReleases: AgentReleases;
  terminals: Terminals;
  /** Steps that run on agents. */
  executions: ExecutionEngine;
  /** Messages that leave the product. */
  notify: Notify;
  /** The log lines and settings of this process. */
  own: OwnProcess;
  /** Signs evidence bundles. */
  evidence: EvidenceSigner;
  /** Of the runs that this api creates. */
  workflowQueue: string;
  installationId: string;
  /** The jobs of all processes. */
  declaredJobs: readonly DeclaredJob[];
};

/** What background jobs of an api process use in addition. */
export type ApiJobContext = ApiContext & {
  presence: Presence;
  /** Reports of the jobs of this process. */
  reports(): JobReports;
  /** The sockets of open pages. */
  live: { checkSessions(): void };
  nodeUpkeep: NodeUpkeep;
  /** Undefined: there is no internal listener. */
  internal: InternalUpkeep | undefined;
};

/** Upkeep of the node-facing side. */
export type NodeUpkeep = {
  /** Replaces the listener's certificate when half of its validity is over. */
  renewCertificate(now: Date): Promise<boolean>;
  refreshProfile(): Promise<void>;
};

/** What nodes need: their identity, their trust anchors and the addresses of the control plane. */
export type NodeServices = {
  /** Undefined: the CA that nodes trust is missing, and no certificate is issued. */
  authority: Authority | undefined;
  /** Asked before every certificate for a node. */
  gate: IssuanceGate;
  directory: NodeDirectory;
  keys: Pick<TaskSigner, "verifiers" | "verifiersBeyond" | "keySet" | "keySetsAfter" | "rotate" | "refresh">;
  /**
   * The current environment profile; available as soon as the listeners are open. If `known` is newer, because another
   * replica published it, the profile is read again first.
   */
  profile(known?: number): Promise<EnvironmentProfile>;
  /** The URL by which agents reach the node-facing listener. */
  apiUrl(): string;
  /** These two are values of the policy, which changes: read them when they are needed. */
  readonly staleAfterSeconds: number;
  readonly quarantineClones: boolean;
  /** For development: VM hosts without a record may register. */
  readonly allowUnknownHosts: boolean;
  /** An older agent is reported as such. */
  requiredAgentVersion: string;
};
