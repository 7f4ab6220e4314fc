// How long to wait before trying again: exponential, capped, and half of it left to chance so
// that many clients of one failed server do not return in step.

export type BackoffPolicy = { firstMs: number; maxMs: number };

/** `attempt` counts from 0. `random` is a number in [0, 1), a parameter so that tests decide it. */
export function backoffDelay(policy: BackoffPolicy, attempt: number, random: number = Math.random()): number {
  const ceiling = Math.min(policy.maxMs, policy.firstMs * 2 ** Math.min(attempt, 30));
  return Math.round(ceiling / 2 + (ceiling / 2) * random);
}
