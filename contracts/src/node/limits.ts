// Numbers and names that agents and the node-facing API agree on. No schema library here: an agent
// at rest should not carry one.

/** On every request of an agent: which process, and which boot of which machine. */
export const INSTANCE_HEADER = "x-holdfast-instance";
export const BOOT_HEADER = "x-holdfast-boot";

/** In the details of a refused certificate: the serial of the one that the server received; null: none. */
export const RECEIVED_SERIAL = "received_serial";

/** Where a node asks whether its certificate is accepted. */
export const IDENTITY_PATH = "/internal/v1/nodes/{node_id}/identity";

/** Where an agent waits for tasks; with `PROBE_QUERY`, where a probe tries that without taking any. */
export const WAIT_PATH = "/internal/v1/nodes/{node_id}/tasks/wait";
export const PROBE_QUERY = "probe=true";

/** A lease is renewed by every poll, heartbeat or progress that names the task. */
export const LEASE_SECONDS = 180;
/** At least; whatever changes is reported at once. */
export const HEARTBEAT_SECONDS = 60;
/** Shorter than the minute after which proxies usually cut a silent connection. */
export const LONGEST_WAIT_SECONDS = 55;
/** Tasks an agent takes at once, and results it posts at once. */
export const BATCH = 32;
/** Of one result, as JSON. */
export const MOST_RESULT_BYTES = 1024 * 1024;
export const MOST_RESULTS_BODY_BYTES = 4 * MOST_RESULT_BYTES;
/** A clock further off than this is not trusted to judge expiry. */
export const CLOCK_TOLERANCE_SECONDS = 60;

/** Keys that tasks may be signed with, at one time. */
export const MOST_VERIFIER_KEYS = 16;

/** How `holding` is written in a URL; read back by `HoldingText`. */
export function holdingText(holding: readonly { task_id: string; generation: number }[]): string {
  return holding.map(({ task_id, generation }) => `${task_id}:${generation}`).join(",");
}
