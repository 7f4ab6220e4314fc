// What the link does next, and how long it waits: functions of plain state, so that a simulator of
// many agents decides exactly as one agent does. Time is a parameter, in milliseconds.

import { HEARTBEAT_SECONDS, LONGEST_WAIT_SECONDS } from "@holdfast/contracts/node/limits";
import { type DiagnosticReason, isRejection } from "@holdfast/contracts/reasons/node";
import { type BackoffPolicy, backoffDelay } from "@holdfast/kit/backoff";

export type LinkState = {
  heartbeatMs: number;
  heartbeatDueAt: number;
  /** Nothing is sent before this time. */
  pausedUntil: number;
  /** Failures since the last success. */
  failures: number;
  /** Consecutive polls that returned at once with nothing new. */
  emptyHanded: number;
  /** Shorter where something in between cuts polls that are held for long. */
  longestWaitSeconds: number;
};

export type Step = { do: "heartbeat" } | { do: "wait"; seconds: number } | { do: "pause"; ms: number };

export const atStart: LinkState = {
  heartbeatMs: HEARTBEAT_SECONDS * 1000,
  heartbeatDueAt: 0,
  pausedUntil: 0,
  failures: 0,
  emptyHanded: 0,
  longestWaitSeconds: LONGEST_WAIT_SECONDS,
};

/**
 * A heartbeat when it is due, and between two of them a poll that ends when the next one is. Polls take whole seconds:
 * rounded, so that also with a heartbeat every second there is a poll between two of them.
 */
export function nextStep(state: LinkState, now: number): Step {
  if (state.pausedUntil > now) return { do: "pause", ms: state.pausedUntil - now };
  const seconds = Math.round((state.heartbeatDueAt - now) / 1000);
  return seconds < 1 ? { do: "heartbeat" } : { do: "wait", seconds: Math.min(seconds, state.longestWaitSeconds) };
}

/**
 * After the first heartbeat following a start or a failure, the next one is due at a random time within the interval:
 * otherwise a fleet that came back at once would keep sending its heartbeats at once.
 */
export function afterHeartbeat(state: LinkState, sentAt: number, random: number): LinkState {
  const part = state.heartbeatDueAt === 0 ? 0.1 + 0.9 * random : 1;
  return { ...state, heartbeatDueAt: sentAt + state.heartbeatMs * part, pausedUntil: 0, failures: 0 };
}

/**
 * A poll that returns nothing new long before its time, whatever the latency, is not repeated at once. A task that the
 * node has refused before is not new either: a server that keeps offering it would be refused hundreds of times a minute.
 */
export function afterWait(
  state: LinkState,
  answer: { empty: boolean; requestedMs: number; tookMs: number },
  now: number,
): LinkState {
  if (!answer.empty || answer.tookMs > answer.requestedMs / 2) return { ...state, failures: 0, emptyHanded: 0 };
  const emptyHanded = state.emptyHanded + 1;
  const pause = emptyHanded < 3 ? 0 : Math.min(5_000, 100 * 2 ** Math.min(emptyHanded - 3, 10));
  return { ...state, failures: 0, emptyHanded, pausedUntil: now + pause };
}

/** The next request is a heartbeat: it updates standing, keys and clock. */
export function afterFailure(
  state: LinkState,
  failure: { reason: DiagnosticReason; retryAfterMs: number | undefined },
  now: number,
  random: number,
): LinkState {
  const delay = retryDelay({ ...failure, failures: state.failures }, random);
  return { ...state, failures: state.failures + 1, pausedUntil: now + delay, heartbeatDueAt: 0 };
}

/** Polls that fail sooner were not cut because of their length. */
const CUT_AFTER_MS = 10_000;

/** A poll that was held for this long has failed: the next ones are shorter, in case a proxy has cut it. */
export function afterHeldPoll(state: LinkState, heldMs: number): LinkState {
  if (heldMs < CUT_AFTER_MS) return state;
  const seconds = Math.floor((heldMs / 1000) * 0.75);
  return { ...state, longestWaitSeconds: Math.min(state.longestWaitSeconds, seconds) };
}

const ordinary: BackoffPolicy = { firstMs: 500, maxMs: 30_000 };
/** Only a person can fix these; retrying more often does not help. */
const rejected: BackoffPolicy = { firstMs: 2_000, maxMs: 60_000 };
const rateLimited: BackoffPolicy = { firstMs: 10_000, maxMs: 60_000 };
/** Longer values are ignored: a misconfigured proxy must not keep a node offline for a day. */
const LONGEST_RETRY_AFTER_MS = 300_000;

/** `failures`: how many there were before this one. */
export function retryDelay(
  failure: { reason: DiagnosticReason; retryAfterMs: number | undefined; failures: number },
  random: number,
): number {
  const own = backoffDelay(policyOf(failure.reason), failure.failures, random);
  if (failure.retryAfterMs === undefined) return own;
  // Adds up to a tenth, so that agents with the same response do not retry together.
  const requested = Math.min(failure.retryAfterMs, LONGEST_RETRY_AFTER_MS) * (1 + random / 10);
  return Math.max(own, Math.round(requested));
}

function policyOf(reason: DiagnosticReason): BackoffPolicy {
  if (reason === "edge_rate_limited") return rateLimited;
  return isRejection(reason) ? rejected : ordinary;
}
