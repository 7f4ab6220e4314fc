// What a bundle contains, as a list. Runs confined to one organization, and each part is bounded.

import { logProcesses } from "@holdfast/contracts/endpoints/logs";
import { EVIDENCE_FORMAT } from "@holdfast/contracts/public/evidence-file";
import { version } from "@holdfast/service/version";
import { classify } from "../drift/classify/classify.ts";
import { toFile } from "../drift/evidence/export.ts";
import { readStory } from "../drift/trace/read.ts";
import { storedCause } from "../drift/verdicts/stored.ts";
import { presentLine } from "../logs/lines.ts";
import { isSeenBy } from "../tasks/queries.ts";
import { CLASSIFICATION, type Classification } from "./archive/replay.ts";
import type { BundlePart } from "./part.ts";

/** Of each list. */
const MOST = 500;

export const parts: readonly BundlePart[] = [
  {
    path: "timeline.json",
    title: "everything that is recorded, in the order of time",
    read: ({ tx, subject, viewer, logs }) => readStory(tx, subject.resolved, viewer, logs),
  },
  {
    path: "nodes.json",
    title: "the nodes as the server knows them, with their last heartbeat",
    read: async ({ tx, subject }) => tx`
      SELECT n.id, n.name, n.status, n.status_reason, n.created_at, n.status_changed_at, n.revoked_at, p.heartbeat_at,
             p.disconnected_at, p.disconnected_why, p.clock_skew_ms, p.correlation_id, p.heartbeat
      FROM nodes n LEFT JOIN node_presence p ON p.node_id = n.id WHERE n.id = ANY(${subject.nodeIds}::uuid[])
      ORDER BY n.id`,
  },
  {
    path: "allocation.json",
    title: "the allocation",
    read: async ({ tx, subject }) => {
      const [row] = await tx`
        SELECT id, node_id, username, status, created_at FROM allocations WHERE id = ${subject.allocationId}::uuid`;
      return row ?? null;
    },
  },
  {
    path: "certificates.json",
    title: "certificates that were issued to the nodes",
    read: async ({ tx, subject }) => tx`
      SELECT node_id, serial, issued_at, issued_for, not_before, not_after, revoked_at FROM node_certificates
      WHERE node_id = ANY(${subject.nodeIds}::uuid[]) ORDER BY issued_at DESC LIMIT 50`,
  },
  {
    path: CLASSIFICATION,
    title: "each classification with all evidence that it rests on; `holdfast evidence replay` reads it",
    read: async ({ tx, subject, evidence, policy, now }): Promise<Classification> => {
      const at = now.toISOString();
      const present = [...evidence].map(([nodeId, observations]) => ({
        ...{ node_id: nodeId, incident_id: null, at },
        causes: classify(observations, policy, now.getTime()).causes.map((cause) =>
          storedCause(cause, observations),
        ),
        evidence: { format: EVIDENCE_FORMAT, at, observations: observations.map(toFile) },
      }));
      const rows = await tx<VerdictRow[]>`
        SELECT v.incident_id, i.node_id, v.at, v.causes, v.evidence
        FROM incident_verdicts v JOIN incidents i ON i.id = v.incident_id
        WHERE v.incident_id = ANY(${subject.resolved.incidentIds}::uuid[]) ORDER BY v.at DESC LIMIT 100`;
      const past = rows.map(({ incident_id, node_id, at: time, causes, evidence: observations }) => ({
        ...{ node_id, incident_id, at: time.toISOString(), causes },
        evidence: { format: EVIDENCE_FORMAT, at: time.toISOString(), observations },
      }));
      return { policy: { ...policy }, verdicts: [...present, ...past] } as Classification;
    },
  },
  {
    path: "verdicts.json",
    title: "the verdict on each node as the worker stored it last",
    read: async ({ tx, subject }) => tx`
      SELECT node_id, incident_id, classified_at, changed_at, user_state, management, workload, access, causes
      FROM node_verdicts WHERE node_id = ANY(${subject.nodeIds}::uuid[])`,
  },
  {
    path: "observations.json",
    title: "evidence as it was observed, also what was replaced since",
    read: async ({ tx, subject }) => tx`
      SELECT id, node_id, kind, key, value, observer, detail, observed_at, seen_at, received_at, correlation_id, incident_id,
             replaced_at
      FROM node_observations WHERE node_id = ANY(${subject.nodeIds}::uuid[]) ORDER BY observed_at DESC LIMIT ${MOST}`,
  },
  {
    path: "incidents.json",
    title: "incidents of the nodes",
    read: async ({ tx, subject }) => tx`
      SELECT id, node_id, reason, signal, severity, owner, next_action, user_state, began_at, opened_at, closed_at, proof
      FROM incidents WHERE id = ANY(${subject.resolved.incidentIds}::uuid[]) ORDER BY opened_at DESC`,
  },
  {
    path: "tasks.json",
    title: "tasks with their ids and states",
    needs: "tasks:read",
    read: async ({ tx, subject, viewer }) => {
      const { nodeIds, allocationId, resolved } = subject;
      const ofAllocation = tx`AND (${allocationId}::uuid IS NULL OR t.allocation_id = ${allocationId}::uuid)`;
      return tx`
        SELECT t.id, t.node_id, t.type, t.status, t.generation, t.failure, t.created_by, t.correlation_id, t.incident_id,
               t.created_at, t.expires_at, t.finished_at
        FROM tasks t
        WHERE (t.node_id = ANY(${nodeIds}::uuid[]) OR t.id = ANY(${resolved.taskIds}::uuid[]))
          ${ofAllocation} AND ${isSeenBy(tx, viewer.caller)}
        ORDER BY t.id DESC LIMIT ${MOST}`;
    },
  },
  {
    path: "terminals.json",
    title: "terminals with their readiness chain and last failure",
    read: async ({ tx, subject }) => {
      const { nodeIds, allocationId } = subject;
      return tx`
        SELECT id, node_id, allocation_id, state, actor_name, correlation_id, chain, failure, task_id, gateway_id, created_at,
               closed_at, close_reason, exit, bytes_in, bytes_out
        FROM terminal_sessions
        WHERE node_id = ANY(${nodeIds}::uuid[])
          AND (${allocationId}::uuid IS NULL OR allocation_id = ${allocationId}::uuid)
        ORDER BY id DESC LIMIT 100`;
    },
  },
  {
    path: "diagnostics.json",
    title: "what the agents recorded on their hosts",
    read: async ({ tx, subject }) => tx`
      SELECT node_id, seq, record, received_at FROM node_diagnostics WHERE node_id = ANY(${subject.nodeIds}::uuid[])
      ORDER BY received_at DESC, seq DESC LIMIT ${MOST}`,
  },
  {
    path: "audit.json",
    title: "audit events",
    needs: "audit:read",
    read: async ({ tx, subject }) => {
      const { id, allocationId, resolved } = subject;
      const { incidentIds, correlationIds, taskIds } = resolved;
      const tasks = await tx<{ id: string }[]>`
        SELECT id FROM tasks WHERE node_id = ANY(${subject.nodeIds}::uuid[])
          AND (${allocationId}::uuid IS NULL OR allocation_id = ${allocationId}::uuid)
        ORDER BY id DESC LIMIT 100`;
      const ofNodes = allocationId === null ? subject.nodeIds : [];
      const targets = [id, ...ofNodes, ...taskIds, ...tasks.map((task) => task.id)];
      return tx`
        SELECT id, at, actor_type, actor_id, actor_name, role, action, target_type, target_id, target_name, result, reason,
               correlation_id, incident_id, details
        FROM audit_events
        WHERE org_id = current_org() AND (target_id = ANY(${targets}::text[])
          OR correlation_id = ANY(${[id, ...correlationIds]}::text[])
          OR incident_id = ANY(${allocationId === null ? incidentIds : []}::uuid[]))
        ORDER BY id DESC LIMIT ${MOST}`;
    },
  },
  {
    path: "versions.json",
    title: "versions of the server, its processes, the database and the agents",
    read: async ({ tx, subject, logs }) => {
      const [database] = await tx<{ version: string }[]>`SELECT current_setting('server_version') AS version`;
      const agents = await tx`
        SELECT node_id, heartbeat -> 'agent_version' AS reported, heartbeat -> 'facts' ->> 'agent_version' AS agent_version
        FROM node_presence WHERE node_id = ANY(${subject.nodeIds}::uuid[])`;
      const processes = logs.settings.map(({ process, replica, version: running }) => ({
        process,
        replica,
        version: running,
      }));
      return { holdfast: version, database: database?.version ?? null, processes, agents };
    },
  },
  {
    path: "profile.json",
    title: "the environment profile: the addresses that nodes are to use",
    read: async ({ profile }) => profile,
  },
  {
    path: "settings.json",
    title: "what the processes run with, without secrets; for operators of the platform",
    read: async ({ logs }) =>
      logs.settings.length === 0
        ? null
        : logs.settings.map(({ process, replica, settings }) => ({ process, replica, settings })),
  },
  ...logProcesses.map(
    (process): BundlePart => ({
      path: `logs/${process}.jsonl`,
      title: `log lines of ${process} processes, one JSON object each`,
      read: async ({ logs }) => {
        const lines = logs.lines.filter((line) => line.process === process);
        return lines.length === 0 ? null : lines.map(presentLine);
      },
    }),
  ),
  {
    path: "logs/replicas.json",
    title: "which processes were asked for log lines, and which did not answer",
    read: async ({ logs }) => ({ replicas: logs.replicas, truncated: logs.truncated }),
  },
];

type VerdictRow = {
  incident_id: string;
  node_id: string | null;
  at: Date;
  causes: unknown[];
  evidence: unknown[];
};
