// When a failed attempt is followed by another one.

import * as connectors from "../connectors/all.ts";
import type { Connector } from "../connectors/connector.ts";
import { millisecondsOf, type Node } from "../document/schema.ts";
import type { Failure, NodeEvent } from "./events.ts";

const defaults = { delay: "1s", factor: 2, most: "5m", jitter: 0.2 };

export type FailedAttempt = {
  failure: Failure;
  /** False where the step may have had its effect. */
  outcomeKnown: boolean;
  /** False: it would fail in the same way again. */
  retryable?: boolean;
  /** The service asks to wait so long. */
  retryAfterMs?: number;
};

/** `random`: from 0 to below 1. */
export function afterFailure(
  node: Node,
  failed: FailedAttempt & { node: string; attempt: number },
  { now, random }: { now: Date; random: number },
): Extract<NodeEvent, { type: "node_failed" | "node_retried" }> {
  const { attempt, failure, retryable = true, retryAfterMs = 0 } = failed;
  const retry = "retry" in node ? node.retry : undefined;
  const mayRepeat = retryable && (failed.outcomeKnown || effectOf(node) === "idempotent");
  if (!retry || attempt >= retry.attempts || !mayRepeat) {
    return { type: "node_failed", node: failed.node, attempt, failure };
  }
  const { delay, factor, most, jitter } = { ...defaults, ...retry };
  const full = Math.min(millisecondsOf(delay) * factor ** (attempt - 1), millisecondsOf(most));
  const delayMs = Math.max(Math.round(full * (1 - jitter * random)), retryAfterMs);
  const notBefore = new Date(now.getTime() + delayMs).toISOString();
  return { type: "node_retried", node: failed.node, attempt, failure, notBefore };
}

export function effectOf(node: Node): "at-most-once" | "idempotent" {
  if ("effect" in node && node.effect) return node.effect;
  if (node.type === "connector.action") return declaredEffect(node) ?? "at-most-once";
  if (node.type !== "http.request") return "at-most-once";
  const { method = "GET" } = node;
  return method === "GET" || method === "HEAD" ? "idempotent" : "at-most-once";
}

function declaredEffect({ connector, action }: Extract<Node, { type: "connector.action" }>) {
  const known: Readonly<Record<string, Connector>> = connectors;
  const actions = Object.hasOwn(known, connector) ? known[connector]?.actions : undefined;
  return actions && Object.hasOwn(actions, action) ? actions[action]?.effect : undefined;
}
