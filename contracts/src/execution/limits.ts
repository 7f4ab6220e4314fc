// Numbers and names that agents which run steps and the gateway agree on. No schema library here: agents have none (ADR 35).

/** What this version speaks. */
export const EXECUTION_PROTOCOL = 1;

export const executionKinds = ["connector.action", "agent.execute"] as const;

/** What can run a shell task. */
export const sandboxBackends = ["docker", "podman", "bubblewrap", "host"] as const;
export type SandboxBackend = (typeof sandboxBackends)[number];

/** What a sandbox enforces. */
export const enforcedLimits = ["memory", "pids", "disk", "cpu"] as const;
export type EnforcedLimit = (typeof enforcedLimits)[number];
/** All limits of a shell step, the one first that explains best why a step failed which has hit several. */
export const sandboxLimits = ["time", "memory", "pids", "disk", "output", "cpu"] as const;

export const DEFAULT_MAX_IN_FLIGHT = 10;

/** At most so many of each are named in one frame. */
export const MOST_HELD_IN_FRAME = 1000;
/** Of one `log` frame, and of each stream in a result, in characters. */
export const MOST_OUTPUT_CHARACTERS = 65_536;
/** Of the output in a result, as JSON. */
export const MOST_EXECUTION_OUTPUT_BYTES = 1024 * 1024;

/** Why the gateway closes a socket; see RFC 6455, 7.4. */
export const executionCloseCodes = {
  stopping: 1001,
  /** Silent for longer than the stale time. */
  stale: 4408,
  /** Not a frame of this protocol, or `hello` did not come first. */
  malformed: 4400,
  /** Its token was revoked. */
  revoked: 4401,
  /** So that the agent connects again and sends the results that it still has. */
  cycle: 4000,
} as const;
