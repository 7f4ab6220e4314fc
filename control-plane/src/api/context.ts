// What the api process has at hand to answer requests: made once at start, given to every noun.

import type { IncomingMessage } from "node:http";
import type { EnvironmentProfile } from "@holdfast/contracts/node-protocol";
import type { OwnOriginCheck } from "@holdfast/service/hosts";
import type { Log } from "@holdfast/service/log";
import type { FastifyInstance } from "fastify";
import type { AgentReleases } from "../agent-release/release.ts";
import type { Allocations } from "../allocations/watch.ts";
import type { Sql } from "../database/connect.ts";
import type { Fleets } from "../fleet/view.ts";
import type { Authority } from "../identity/authority.ts";
import type { InternalUpkeep } from "../internal-api/upkeep.ts";
import type { JobReports } from "../mechanisms/background/report.ts";
import type { DeclaredJob } from "../mechanisms/background/stored.ts";
import type { AnswerVault } from "../mechanisms/idempotency.ts";
import type { Signals } from "../mechanisms/signals.ts";
import type { NodeDirectory } from "../nodes/directory/standings.ts";
import type { Authenticator } from "../people/authenticate.ts";
import type { Cookies } from "../people/cookies.ts";
import type { Presence } from "../platform/presence.ts";
import type { TaskEngine } from "../tasks/engine.ts";
import type { TaskSigner } from "../tasks/signing.ts";
import type { Terminals } from "../terminals/open.ts";

export type ApiContext = {
  http: FastifyInstance;
  /** Where a client comes from, on a listener that knows better than the connection. */
  addressOf?: (request: IncomingMessage) => string;
  /** Row-level security shows this one an organization at a time; use it through `withOrg`. */
  app: Sql;
  /** Sees all organizations: sign-in and platform routes only. */
  system: Sql;
  authenticator: Authenticator;
  answers: AnswerVault;
  cookies: Cookies;
  tasks: TaskEngine;
  allocations: Allocations;
  log: Log;
  publicUrl: string | undefined;
  /** Of a request from a browser: the page that sent it is ours. */
  isOwnOrigin: OwnOriginCheck;
  signals: Signals;
  nodes: NodeServices;
  fleets: Fleets;
  agentReleases: AgentReleases;
  terminals: Terminals;
  /** Of all processes. */
  declaredJobs: readonly DeclaredJob[];
};

/** What the background jobs of an api process have at hand besides. */
export type ApiJobContext = ApiContext & {
  presence: Presence;
  /** Of the jobs of this process. */
  reports(): JobReports;
  /** Of the sockets of open pages. */
  live: { checkSessions(): void };
  nodeUpkeep: NodeUpkeep;
  /** Undefined: there is no internal listener. */
  internal: InternalUpkeep | undefined;
};

/** What the node-facing side keeps fresh. */
export type NodeUpkeep = {
  /** Replaces the listener's certificate when half of its life is over. */
  renewCertificate(now: Date): Promise<boolean>;
  refreshProfile(): Promise<void>;
};

/** What nodes need: who they are, whom they trust, where they find us. */
export type NodeServices = {
  /** Undefined: the CA that nodes trust is gone, and nothing is issued. */
  authority: Authority | undefined;
  directory: NodeDirectory;
  keys: Pick<TaskSigner, "verifiers" | "verifiersBeyond" | "keySet" | "keySetsAfter" | "rotate" | "refresh">;
  /**
   * The environment profile in force; known as soon as the listeners are open. A version that somebody knows
   * already, from another replica, is looked for first.
   */
  profile(known?: number): Promise<EnvironmentProfile>;
  /** Where agents reach the node-facing listener. */
  apiUrl(): string;
  staleAfterSeconds: number;
};
