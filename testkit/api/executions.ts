// Executions over one database, as api replicas have them, and agents that exist in the database only.

import type { ExecutionState } from "@holdfast/contracts/endpoints/executions";
import type { DispatchBody } from "@holdfast/contracts/execution/dispatch";
import type { ServiceNews } from "@holdfast/contracts/internal/endpoints";
import type { ExecutionEvent, RequestVerdict } from "@holdfast/contracts/internal/executions";
import { uuidv7 } from "@holdfast/kit/uuid";
import { createLog } from "@holdfast/service/log";
import { createMetrics } from "@holdfast/service/metrics";
import { closeSession, openSession } from "../../control-plane/src/agents/sessions.ts";
import { makeAgentSecret } from "../../control-plane/src/agents/tokens.ts";
import type { Sql } from "../../control-plane/src/database/connect.ts";
import { type ExecutionEngine, openExecutions } from "../../control-plane/src/executions/engine.ts";
import type { Selection } from "../../control-plane/src/executions/settings.ts";
import { openKeyring } from "../../control-plane/src/mechanisms/sealing/keyring.ts";
import { openSignals, type Signals } from "../../control-plane/src/mechanisms/signals.ts";
import { secretsForSteps } from "../../control-plane/src/secrets/use.ts";
import { openTaskPools } from "../../control-plane/src/tasks/engine.ts";
import { openTaskSigner, type TaskSigner } from "../../control-plane/src/tasks/signing.ts";
import { createTestDatabase, openRoles, type TestDatabase } from "../database/database.ts";
import { atEnd } from "../lifetime/at-end.ts";

export type ExecutionReplica = {
  engine: ExecutionEngine;
  signals: Signals;
  signer: TaskSigner;
  news: ServiceNews[];
};

export type LabAgent = {
  id: string;
  orgId: string;
  token: string;
  protocolVersion: number;
  /** The newest one, also when it was closed. */
  sessionId: string;
  /** Of that connection; null: it names none. */
  journalId: string | null;
};

export type NewLabAgent = {
  orgId?: string;
  name?: string;
  kinds?: string[];
  connectors?: string[];
  tags?: string[];
  maxInFlight?: number;
  /** 0: an agent of another system. */
  protocolVersion?: number;
  connected?: boolean;
  journalId?: string | null;
};

export type LabConnection = NewLabAgent & {
  gatewayId?: string;
  sessionId?: string;
  draining?: boolean;
  again?: boolean;
};

export type ExecutionLab = Awaited<ReturnType<typeof openExecutionLab>>;

export type StoredExecution = {
  id: string;
  status: ExecutionState;
  generation: number;
  revision: number;
  agent_id: string | null;
  session_id: string | null;
  error: string | null;
  output: unknown;
  payload: unknown;
  reported: boolean;
  sealed_secret: Buffer | null;
  signature: string | null;
  lease_until: Date | null;
  deadline_at: Date | null;
  wait_until: Date | null;
  accepted_at: Date | null;
  finished_at: Date | null;
  cancel_requested_at: Date | null;
};

export async function openExecutionLab(options: { selection?: Selection } = {}) {
  const database: TestDatabase = await createTestDatabase();
  const { app, system, superuser } = openRoles(database);
  const log = createLog({ process: "test", level: "silent" });
  const keks = { current: { id: "test", key: Buffer.alloc(32, 7) } };
  const keyring = await openKeyring(system, keks);
  const gatewayId = uuidv7();

  const newOrg = async () => {
    const id = uuidv7();
    await superuser`INSERT INTO organizations (id, slug, name) VALUES (${id}, ${`org-${id.slice(-12)}`}, 'Lab')`;
    return id;
  };
  const orgId = await newOrg();

  const newReplica = async (): Promise<ExecutionReplica> => {
    const signals = await openSignals(system, log);
    const signer = await openTaskSigner(system, keyring, { log });
    const pools = openTaskPools({ url: database.systemUrl, application: "test" });
    const news: ServiceNews[] = [];
    const engine = await openExecutions({
      ...{ pools, keyring, signals, log, metrics: createMetrics("test"), sign: signer.sign },
      useSecret: secretsForSteps({ system, keks, log }),
      selection: options.selection ?? "least_in_flight_lru",
      ...{ agentStaleMs: 60_000, wsUrl: undefined, publish: (lines) => void news.push(...lines) },
    });
    atEnd(async () => {
      await engine.stop();
      await signals.stop();
      await Promise.all([pools.swift.end({ timeout: 1 }), pools.durable.end({ timeout: 1 })]);
    });
    return { engine, signals, signer, news };
  };
  const replica = await newReplica();

  const connect = async (agent: LabAgent, changes: LabConnection = {}) => {
    agent.sessionId = changes.sessionId ?? uuidv7();
    agent.protocolVersion = changes.protocolVersion ?? agent.protocolVersion;
    agent.journalId = changes.journalId === undefined ? agent.journalId : changes.journalId;
    const [row] = await superuser<
      { kinds: string[]; connectors: string[] | null; tags: string[]; max_in_flight: number }[]
    >`SELECT kinds, connectors, tags, max_in_flight FROM execution_agents WHERE id = ${agent.id}`;
    if (!row) throw new Error(`there is no agent ${agent.id}`);
    const session = {
      agentId: agent.id,
      sessionId: agent.sessionId,
      gatewayId: changes.gatewayId ?? gatewayId,
      agentVersion: "1.0",
      protocolVersion: agent.protocolVersion,
      capabilities: {
        kinds: changes.kinds ?? row.kinds,
        ...(row.connectors === null ? {} : { connectors: row.connectors }),
        tags: changes.tags ?? row.tags,
        maxInFlight: changes.maxInFlight ?? row.max_in_flight,
      },
      journalId: agent.journalId,
      draining: changes.draining ?? false,
      again: changes.again ?? false,
      correlationId: uuidv7(),
    };
    const opened = await openSession(system, session, replica.engine);
    if (opened) replica.engine.agentChanged({ id: agent.id, orgId: agent.orgId });
    return opened;
  };

  return {
    ...{ database, app, system, superuser, log, orgId, gatewayId, newOrg, newReplica, replica, connect },
    /** Runs steps of every kind unless told otherwise, and is connected to the lab's gateway. */
    async newAgent(agent: NewLabAgent = {}): Promise<LabAgent> {
      const { protocolVersion = 1, connected = true, name = "host", journalId = null } = agent;
      const id = uuidv7();
      const { token, hash } = makeAgentSecret(agent.orgId ?? orgId);
      await superuser`
        INSERT INTO execution_agents (id, org_id, name, token_hash, creator_name, agent_version, kinds, connectors, tags,
          max_in_flight)
        VALUES (${id}, ${agent.orgId ?? orgId}, ${name}, ${hash}, 'test', '1.0',
          ${agent.kinds ?? ["agent.execute", "connector.action"]}, ${agent.connectors ?? null}, ${agent.tags ?? []},
          ${agent.maxInFlight ?? 10})`;
      const made = { id, orgId: agent.orgId ?? orgId, token, protocolVersion, sessionId: uuidv7(), journalId };
      if (connected) await connect(made);
      return made;
    },
    async disconnect(agent: LabAgent): Promise<void> {
      await closeSession(system, { agentId: agent.id, sessionId: agent.sessionId });
      replica.engine.agentChanged({ id: agent.id, orgId: agent.orgId });
    },
    /** A dispatch of the lab's gateway. */
    async dispatch(
      changes: Partial<DispatchBody> = {},
      { engine, asking = gatewayId }: { engine?: ExecutionEngine; asking?: string } = {},
    ): Promise<RequestVerdict> {
      const body = { ...dispatchBody(orgId), ...changes };
      const [verdict] = await (engine ?? replica.engine).dispatch([
        { body, correlationId: uuidv7(), gatewayId: asking },
      ]);
      if (!verdict) throw new Error("no verdict");
      return verdict;
    },
    async report(event: ExecutionEvent, { asking = gatewayId } = {}) {
      const [verdict] = await replica.engine.report(asking, [event]);
      if (!verdict) throw new Error("no verdict");
      return verdict;
    },
    async row(requestId: string): Promise<StoredExecution> {
      const [row] = await superuser<StoredExecution[]>`SELECT * FROM executions WHERE request_id = ${requestId}`;
      if (!row) throw new Error(`there is no request ${requestId}`);
      return row;
    },
    /** Compares the counts of all agents with their requests. */
    async miscounted(): Promise<readonly object[]> {
      return superuser`
        SELECT g.id, g.in_flight, count(e.id)::int AS requests FROM execution_agents g
        LEFT JOIN executions e ON e.agent_id = g.id AND e.status IN ('dispatched', 'running')
        GROUP BY g.id HAVING g.in_flight <> count(e.id)`;
    },
  };
}

/** An echo: a step without a task. */
export function dispatchBody(organizationId: string): DispatchBody {
  return {
    organizationId,
    requestedByUserId: uuidv7(),
    runId: uuidv7(),
    workflowId: "workflow",
    nodeId: "step",
    nodeType: "agent.execute",
    attemptCount: 1,
    kind: "agent.execute",
    payload: { nodeId: "step", node: { id: "step", type: "agent.execute" } },
  };
}

export const shellPayload = {
  nodeId: "step",
  node: { id: "step", type: "agent.execute", config: { task: { type: "shell", script: "true" } } },
};

export const resultOf = (
  agent: Pick<LabAgent, "id" | "sessionId">,
  requestId: string,
  generation: number | null,
  result: { status: "succeeded" | "failed"; output?: unknown; error?: string } = {
    status: "succeeded",
    output: {},
  },
): ExecutionEvent => ({
  ...{
    type: "result",
    request_id: requestId,
    agent_id: agent.id,
    session_id: agent.sessionId,
    generation,
    result,
  },
});

export const eventOf = (
  type: "accepted" | "renewed",
  agent: Pick<LabAgent, "id" | "sessionId">,
  requestId: string,
  generation = 1,
): ExecutionEvent => ({
  type,
  request_id: requestId,
  agent_id: agent.id,
  session_id: agent.sessionId,
  generation,
});

export const declinedOf = (
  agent: Pick<LabAgent, "id" | "sessionId">,
  requestId: string,
  generation = 1,
): ExecutionEvent => ({
  ...{ type: "declined", request_id: requestId, agent_id: agent.id, session_id: agent.sessionId, generation },
  reason: "it is about to stop",
});

/** The time of these columns is over. */
export async function lapse(
  superuser: Sql,
  requestId: string,
  column: "deadline_at" | "wait_until",
): Promise<void> {
  await superuser`UPDATE executions SET ${superuser(column)} = now() WHERE request_id = ${requestId}`;
}
