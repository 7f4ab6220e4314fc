// Recovery tokens on the way to connected nodes: each heartbeat says which one the node has, and the response brings a new
// one long before it gets old. Without a change there is no statement.

import { hash } from "node:crypto";
import { CLOCK_TOLERANCE_SECONDS } from "@holdfast/contracts/node/limits";
import type { HeartbeatAnswer } from "@holdfast/contracts/node/protocol";
import type { HeldRecoveryToken, RecoveryToken } from "@holdfast/contracts/node/recovery";
import type { Log } from "@holdfast/service/log";
import { isUnavailable, type Sql } from "../database/connect.ts";
import { createBatches } from "../mechanisms/batches.ts";
import type { Signals } from "../mechanisms/signals.ts";
import type { RecoveryPolicy } from "./settings.ts";
import { issueTokens, markShown, type Recipient, type Shown } from "./tokens.ts";

type NodeRef = { id: string; orgId: string };

export type TokenRefresh = {
  /** `held`: from the heartbeat; undefined: an agent from before tokens. Never rejects. */
  after(node: NodeRef, held: HeldRecoveryToken | null | undefined): Promise<Refreshed>;
};

/** `again`: the node has no other token that works, and is to confirm this one now, not with its next heartbeat. */
export type Refreshed = Pick<HeartbeatAnswer, "recovery" | "again">;

/** A new one after this part of an hour, different for each node, so that a fleet does not get them all at once. */
const REFRESH_AFTER_MS = { least: 40 * 60_000, spread: 15 * 60_000 };
const GATHER_MS = 50;
const MOST_IN_ONE = 256;

export function createTokenRefresh(options: {
  system: Sql;
  policy: RecoveryPolicy;
  /** The name of the active environment profile. */
  profile: () => Promise<string>;
  signals: Pick<Signals, "subscribe" | "onReconnected">;
  log: Log;
  now?: () => number;
}): TokenRefresh {
  const { system, policy, log } = options;
  const now = options.now ?? Date.now;
  /** What each node showed last, and whether that is one that works. */
  const known = new Map<string, { seq: number; works: boolean }>();
  /** Nodes that were asked to confirm a token: once, because a node that cannot keep one would never stop. */
  const confirming = new Set<string>();
  // With the identity of a node its tokens end, too.
  options.signals.subscribe("node_standing", (ids) => {
    for (const id of ids) {
      known.delete(id);
      confirming.delete(id);
    }
  });
  options.signals.onReconnected(() => known.clear());

  const shown = createBatches<Shown, boolean>({
    ...{ most: MOST_IN_ONE, atOnce: 1, restMs: GATHER_MS, keyOf: ({ nodeId }) => nodeId },
    concernsAll: isUnavailable,
    run: async (batch) => {
      const working = await markShown(system, batch);
      return batch.map(({ nodeId }) => working.has(nodeId));
    },
  });
  const issued = createBatches<Recipient, RecoveryToken | undefined>({
    ...{ most: MOST_IN_ONE, atOnce: 1, restMs: GATHER_MS, keyOf: ({ nodeId }) => nodeId },
    concernsAll: isUnavailable,
    run: async (batch) => {
      const tokens = await issueTokens(system, batch, {
        profile: await options.profile(),
        maxAgeSeconds: policy.tokenMaxAgeSeconds,
      });
      return batch.map(({ nodeId }) => tokens.get(nodeId));
    },
  });

  const works = async (node: NodeRef, { seq }: HeldRecoveryToken) => {
    const before = known.get(node.id);
    if (before?.seq === seq) return before.works;
    const answer = await shown.add({ nodeId: node.id, seq });
    known.set(node.id, { seq, works: answer });
    return answer;
  };

  return {
    async after(node, held) {
      if (held === undefined || !policy.automatic) return {};
      try {
        const isWorking = held !== null && (await works(node, held));
        if (isWorking) confirming.delete(node.id);
        if (isWorking && !isDue(node.id, held, { maxAgeSeconds: policy.tokenMaxAgeSeconds, now: now() }))
          return {};
        const token = await issued.add({ nodeId: node.id, orgId: node.orgId, shown: held?.seq ?? 0 });
        if (token === undefined) return {};
        if (isWorking || confirming.has(node.id)) return { recovery: token };
        confirming.add(node.id);
        return { recovery: token, again: true };
      } catch (error) {
        // The heartbeat itself is more important; the next one tries again.
        log.warn({ err: error, node_id: node.id }, "could not refresh a recovery token");
        return {};
      }
    },
  };
}

export function isDue(
  nodeId: string,
  { expires_at }: Pick<HeldRecoveryToken, "expires_at">,
  { maxAgeSeconds, now }: { maxAgeSeconds: number; now: number },
): boolean {
  const maxAgeMs = maxAgeSeconds * 1000;
  const share = hash("sha256", nodeId, "buffer").readUInt32BE(0) / 2 ** 32;
  const after = Math.min(REFRESH_AFTER_MS.least + REFRESH_AFTER_MS.spread * share, maxAgeMs / 2);
  const ageMs = maxAgeMs - (Date.parse(expires_at) - now);
  // One that lasts longer than allowed was issued before the limit was lowered, and has ended here already.
  return ageMs >= after || ageMs < -CLOCK_TOLERANCE_SECONDS * 1000;
}
