// When a failed attempt is followed by another one.

import { millisecondsOf, type Node } from "../document/schema.ts";
import type { Failure, NodeEvent } from "./events.ts";

const defaults = { delay: "1s", factor: 2, most: "5m", jitter: 0.2 };

/** `random`: from 0 to below 1. `outcomeKnown`: false where the step may have had its effect. */
export function afterFailure(
  node: Node,
  failed: { node: string; attempt: number; failure: Failure; outcomeKnown: boolean },
  { now, random }: { now: Date; random: number },
): Extract<NodeEvent, { type: "node_failed" | "node_retried" }> {
  const { attempt, failure } = failed;
  const retry = "retry" in node ? node.retry : undefined;
  const mayRepeat = failed.outcomeKnown || effectOf(node) === "idempotent";
  if (!retry || attempt >= retry.attempts || !mayRepeat) {
    return { type: "node_failed", node: failed.node, attempt, failure };
  }
  const { delay, factor, most, jitter } = { ...defaults, ...retry };
  const full = Math.min(millisecondsOf(delay) * factor ** (attempt - 1), millisecondsOf(most));
  const notBefore = new Date(now.getTime() + Math.round(full * (1 - jitter * random))).toISOString();
  return { type: "node_retried", node: failed.node, attempt, failure, notBefore };
}

export function effectOf(node: Node): "at-most-once" | "idempotent" {
  if (!("effect" in node) && node.type !== "http.request") return "at-most-once";
  if (node.effect) return node.effect;
  const { method = "GET" } = node as { method?: string };
  return node.type === "http.request" && (method === "GET" || method === "HEAD") ? "idempotent" : "at-most-once";
}
