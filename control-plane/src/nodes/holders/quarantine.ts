// Two machines have proved that both use the identity of one node: that is recorded, and the node is quarantined unless a
// setting says otherwise. No brake applies: this is proof about one node, not a suspicion about many.

import { ApiError } from "@holdfast/contracts/errors";
import type { ReasonCode } from "@holdfast/contracts/reasons/catalogue";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Log } from "@holdfast/service/log";
import type { ApiContext, NodeServices } from "../../api/context.ts";
import { recordAudit, systemActor } from "../../audit/record.ts";
import type { Tx } from "../../database/connect.ts";
import { type NewObservation, recordObservationsIn } from "../../drift/evidence/write.ts";
import { forgetAttempts, takeAttempt } from "../../mechanisms/rate-limit.ts";
import { type Moved, moveNode } from "../directory/state.ts";
import type { Holder } from "./lineage.ts";
import type { Clone } from "./review.ts";

/** They prove it again every minute while both run. */
const audited = { attempts: 1, windowSeconds: 60 * 60 };

export const CLONE_REASON =
  "Two machines run with this node's identity. An operator decides which one stays; the other one must be reimaged.";

const reason: ReasonCode = "cloned_identity_detected";

type Deps = Pick<ApiContext, "system" | "signals"> & {
  log: Log;
  nodes: Pick<NodeServices, "directory" | "quarantineClones">;
};

const ATTEMPTS = 3;

/** Never rejects: what could not be done is done when they prove it again. */
export async function reactToClone(deps: Deps, clone: Clone): Promise<void> {
  const { system, log } = deps;
  const { nodeId } = clone;
  for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
    const correlationId = uuidv7();
    try {
      if (await isDecided(system, clone)) return;
      const isNews = await isFirst(system, nodeId);
      const instances = clone.holders.map(describe);
      const details = { correlation_id: correlationId, node_id: nodeId, instances };
      if (isNews) log.warn(details, "two machines run with the identity of one node");
      return await recordAndQuarantine(deps, clone, { correlationId, isNews, instances });
    } catch (error) {
      if (error === isOver) return;
      const details = { err: error, correlation_id: correlationId, node_id: nodeId, attempt };
      log.error(details, "could not quarantine a node with two machines");
      await forgetAttempts(system, "two_instances", nodeId).catch(() => undefined);
    }
  }
}

/**
 * The last turns before an operator's decision are proved by the first heartbeats of the kept machine after it: they show
 * nothing new. Of two that still run, both have sent a heartbeat since.
 */
async function isDecided(system: ApiContext["system"], { nodeId, holders }: Clone): Promise<boolean> {
  const [decided] = await system<{ observed_at: Date }[]>`
    SELECT observed_at FROM node_observations
    WHERE node_id = ${nodeId} AND kind = 'instances' AND replaced_at IS NULL AND observer = 'operator' AND value = 'one'`;
  return decided !== undefined && holders.some(({ lastAt }) => lastAt <= decided.observed_at.getTime());
}

const isOver = new Error("the certificate of one of the two is revoked");

/** Whoever has a revoked certificate is not this node any more: its last heartbeats arrived while that was decided. */
async function hasRevoked(tx: Tx, { nodeId, holders }: Clone): Promise<boolean> {
  const serials = holders.flatMap(({ serial }) => serial ?? []);
  const rows = await tx`
    SELECT FROM node_certificates
    WHERE node_id = ${nodeId} AND serial = ANY(${serials}::text[]) AND revoked_at IS NOT NULL LIMIT 1`;
  return rows.length > 0;
}

async function recordAndQuarantine(
  { system, signals, log, nodes }: Deps,
  clone: Clone,
  { correlationId, isNews, instances }: { correlationId: string; isNews: boolean; instances: object[] },
): Promise<void> {
  const { nodeId, orgId } = clone;
  const { moved, changed } = await system.begin(async (tx) => {
    // First, as all who write evidence do: it refers to the node, which is locked to be moved.
    const changed = await recordObservationsIn(tx, [observationOf(clone, correlationId)]);
    // It has waited for an operator's decision that was being made.
    if (await hasRevoked(tx, clone)) throw isOver;
    const moved = nodes.quarantineClones
      ? await moveNode(tx, nodeId, "fence", { reason: CLONE_REASON })
      : undefined;
    const [node] = await tx<{ name: string }[]>`SELECT name FROM nodes WHERE id = ${nodeId}`;
    const target = { type: "node", id: nodeId, name: node?.name ?? nodeId };
    const event = { orgId, correlationId, by: systemActor("node-api"), target };
    if (isNews) {
      const details = { instances };
      await recordAudit(tx, log, { ...event, action: "node.two_instances", result: "failed", reason, details });
    }
    if (isMove(moved)) {
      const details = { from: moved.from, to: moved.to, cause: reason, instances };
      await recordAudit(tx, log, { ...event, action: "node.quarantine", result: "allowed", details });
    }
    return { moved, changed };
  });
  if (isMove(moved)) nodes.directory.changed(moved);
  signals.publish("evidence", changed);
}

function isMove(moved: Awaited<ReturnType<typeof moveNode>>): moved is Moved {
  return moved !== undefined && !("refused" in moved) && moved.from !== moved.to;
}

async function isFirst(system: ApiContext["system"], nodeId: string): Promise<boolean> {
  try {
    await takeAttempt(system, audited, "two_instances", nodeId);
    return true;
  } catch (error) {
    if (error instanceof ApiError) return false;
    throw error;
  }
}

function observationOf({ nodeId, holders: [one, other] }: Clone, correlationId: string): NewObservation {
  return {
    ...{ nodeId, kind: "instances", value: "two_or_more", observer: "control_plane", correlationId },
    observedAt: new Date(Math.max(one.lastAt, other.lastAt)),
    detail: {
      ...{ one: one.instanceId, one_boot: one.bootId, one_host: one.hostname, one_address: one.address },
      ...{
        other: other.instanceId,
        other_boot: other.bootId,
        other_host: other.hostname,
        other_address: other.address,
      },
    },
  };
}

function describe({ id, instanceId, bootId, serial, hostname, address }: Holder) {
  return { holder: id, instance_id: instanceId, boot_id: bootId, serial, hostname, address };
}
