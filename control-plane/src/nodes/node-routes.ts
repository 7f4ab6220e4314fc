// What agents request for their own node: heartbeat, a new certificate, delivery of diagnostic records.

import { ApiError } from "@holdfast/contracts/errors";
import {
  checkIdentity,
  renewCertificate,
  sendDiagnostics,
  sendHeartbeat,
} from "@holdfast/contracts/node/endpoints";
import type { DiagnosticRecord, HeartbeatAnswer } from "@holdfast/contracts/node/protocol";
import type { ReasonCode } from "@holdfast/contracts/reasons/catalogue";
import { placeOf } from "@holdfast/contracts/reasons/hops";
import { isProblem, nodeReason, ownerGroupOf, unknownReason } from "@holdfast/contracts/reasons/node";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { ApiContext } from "../api/context.ts";
import { auditForgery } from "../audit/forgeries.ts";
import { type AuditActor, recordAudit } from "../audit/record.ts";
import { takeAttempt } from "../mechanisms/rate-limit.ts";
import { heartbeatWanted, type NodeApi, type NodeCall, nodeRoute } from "../node-api/route.ts";
import type { NodeStream } from "../node-api/streams/uses.ts";
import { moveNode } from "./directory/state.ts";
import { reactToClone } from "./holders/quarantine.ts";
import { toIssued } from "./identity/certificates.ts";
import { renew } from "./identity/renew.ts";
import { trustFor } from "./identity/trust.ts";
import { createPresence, recordDiagnostics } from "./presence/presence.ts";

/** Per reason. A compromised node, or one that fails every minute, must not fill the audit. */
const reports = { attempts: 20, windowSeconds: 60 * 60 };

export function nodeFacingRoutes(nodeApi: NodeApi, api: ApiContext): void {
  const presence = createPresence(api.system, api.log);
  askForHeartbeats(nodeApi, api);

  nodeApi.streamUses.push(({ id: streamId, node }) => ({
    closed(why) {
      // What this server does itself says nothing about the node.
      if (why === "superseded" || why === "server_stopped") return;
      void presence.disconnected({ nodeId: node.id, instanceId: node.instanceId, streamId, why });
    },
  }));
  nodeApi.pollLostListeners.push((node) => {
    const { id: nodeId, instanceId } = node;
    void presence.disconnected({ nodeId, instanceId, streamId: undefined, why: "connection_lost" });
  });

  nodeRoute(nodeApi, sendHeartbeat, async (call): Promise<HeartbeatAnswer> => {
    const { holding, ...report } = call.body;
    const now = new Date();
    const [{ cancel }, { number, review }] = await Promise.all([
      api.tasks.renewLeases(call.node.id, holding),
      presence.record({ node: call.node, from: call, report, at: now }),
    ]);
    const { node, correlationId, instanceId, bootId } = call;
    for (const one of nodeApi.observers) {
      one.heartbeat?.({ nodeId: node.id, heartbeat: report, at: now, correlationId, instanceId, bootId });
    }
    if (review?.clone) await reactToClone(api, review.clone);
    // At whichever replica they are.
    if (review?.askOthers) api.signals.publish("node_holders", [node.id]);
    const { status, reason } = await standingAfterHeartbeat(api, call);
    const [trust, ...parts] = await Promise.all([
      trustFor(api.nodes, report),
      ...nodeApi.heartbeatParts.map((part) => part(node, report)),
    ]);
    return Object.assign(
      { server_time: now.toISOString(), node: { status, reason }, cancel },
      number === undefined ? {} : { number },
      review?.confirm === number && number !== undefined ? { again: true } : {},
      trust,
      ...parts,
    );
  });

  nodeRoute(nodeApi, renewCertificate, async ({ body, node, correlationId }) => {
    const { authority, gate } = api.nodes;
    if (!authority) throw new ApiError("ca_unavailable");
    const certificate = await renew({ system: api.system, authority, gate }, node, body.csr);
    api.log.info({ correlation_id: correlationId, node_id: node.id, serial: certificate.serial }, "renewed");
    return { ...toIssued(certificate), trust_bundle: [...authority.trustBundle] };
  });

  // The identity hook has decided already.
  nodeRoute(nodeApi, checkIdentity, async ({ node }) => ({ node_id: node.id }));

  nodeRoute(nodeApi, sendDiagnostics, async ({ body, node }) => {
    const { seq, fresh } = await recordDiagnostics(api.system, node, body);
    const delivered = { nodeId: node.id, records: fresh, sentAt: body.sent_at };
    for (const one of nodeApi.observers) one.diagnostics?.(delivered);
    for (const record of fresh.filter(isAudited).slice(-MOST_AUDITED)) await auditReport(api, node, record);
    return { seq };
  });
}

/** The newest of one delivery. */
const MOST_AUDITED = 8;

/** Terminals have audit events of their own, with the same correlation id. */
function isAudited({ reason }: DiagnosticRecord): boolean {
  return isProblem(reason) && nodeReason(reason)?.class !== "terminal";
}

/** Problems that an agent reports are in the audit under the correlation id of their record. */
async function auditReport(api: ApiContext, node: { id: string; orgId: string }, record: DiagnosticRecord) {
  const { system, log } = api;
  const { reason, detail } = record;
  const known = nodeReason(reason);
  const { at, signal } = known ?? unknownReason;
  try {
    // A node that makes up codes gets no more than one that has a single problem.
    await takeAttempt(system, reports, known ? reason : "unknown_reason", node.id);
  } catch (error) {
    if (error instanceof ApiError) return;
    throw error;
  }
  const [row] = await system<{ name: string }[]>`SELECT name FROM nodes WHERE id = ${node.id}`;
  const { id, orgId } = node;
  const name = row?.name ?? id;
  const actor: AuditActor = { actor_type: "node", actor_id: id, actor_name: name, role: "node" };
  const correlationId = record.correlation_id ?? uuidv7();
  if (reason === "certificate_header_refused") {
    const forgery = { listener: "agent", address: detail, correlationId, count: 1 };
    return auditForgery(system, log, forgery, { orgId, actor, target: { id, name } });
  }
  const refused = reason === "trust_update_refused";
  await recordAudit(system, log, {
    // Or a code that only a newer agent knows, which readers show in words.
    ...{ orgId, by: actor, correlationId, reason: reason as ReasonCode },
    action: refused ? "node.trust_refuse" : "node.report",
    result: refused ? "denied" : "failed",
    target: { type: "node", id, name },
    details: refused ? { detail } : { detail, at: record.at, ...placeOf(at), signal, owner: ownerGroupOf(reason) },
  });
}

/** Whoever uses the identity of the node shows that it runs. One that is not connected at the moment does so within a minute. */
function askForHeartbeats({ streamUses, held }: NodeApi, { signals }: ApiContext): void {
  const streams = new Map<string, Set<NodeStream>>();
  streamUses.push((stream) => {
    const own = streams.get(stream.node.id) ?? new Set();
    streams.set(stream.node.id, own.add(stream));
    return {
      closed() {
        own.delete(stream);
        if (own.size === 0) streams.delete(stream.node.id);
      },
    };
  });
  signals.subscribe("node_holders", (ids) => {
    for (const id of ids) for (const stream of streams.get(id) ?? []) stream.send({ beat: true });
    for (const [end, { nodeId }] of [...held]) if (ids.includes(nodeId)) end(heartbeatWanted);
  });
}

/** The first heartbeat makes an enrolling node active. */
async function standingAfterHeartbeat(api: ApiContext, { node }: NodeCall<typeof sendHeartbeat>) {
  const { directory } = api.nodes;
  const standing = await directory.standing(node.id);
  if (!standing) throw new ApiError("certificate_unusable");
  if (standing.status !== "enrolling") return standing;
  const moved = await api.system.begin((tx) => moveNode(tx, node.id, "heartbeat"));
  if (!moved || "refused" in moved) throw new Error("a heartbeat is never refused");
  directory.changed(moved);
  return { status: moved.row.status, reason: moved.row.status_reason };
}
