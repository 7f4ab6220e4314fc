// What the execution of shell steps needs of a sandbox. The contract suite (test/drivers/sandbox) defines what every
// implementation must do. Time and output are limited by whoever uses it, alike on every backend.

import type { EnforcedLimit, SandboxBackend } from "@holdfast/contracts/execution/limits";

export type SandboxDriver = {
  /** As it is called in settings and results. */
  readonly name: SandboxBackend;
  readonly provides: SandboxFeatures;
  /** What works on this host right now. Starts no script of anybody else, and leaves nothing behind. */
  check(): Promise<SandboxCheck>;
  /**
   * Starts a script, with every limit of the order that `check` reports as enforced. Problems, also a limit that cannot be
   * set after all, are reported by `ended`.
   */
  run(order: SandboxOrder): SandboxRun;
  /** Ends and removes what an agent that was killed left behind: whatever carries `owner`. Returns how many runs that were. */
  recover(): Promise<number>;
};

/**
 * `isolation`: read-only root, writable /work and /tmp, no network unless ordered, no capabilities, no new privileges.
 * `images`: the order may name an image; without it, scripts see the programs of the host.
 */
export type SandboxFeatures = { isolation: boolean; images: boolean };

export type SandboxOptions = {
  /**
   * The id of the agent. Processes, cgroups, mounts, containers and directories are named by `runTag` with it, so that the
   * next start finds those of this agent, and never those of another on the same host.
   */
  owner: string;
  /** Of this agent alone. Whatever is in it when the agent starts was left behind. */
  root: string;
};

export type OutputStream = "stdout" | "stderr";

export type SandboxOrder = {
  /** A UUID, of this run alone. */
  id: string;
  shell: "sh" | "bash";
  script: string;
  /** In addition to a minimal one. Nothing of the agent's environment is inherited. Never in arguments: values may be secret. */
  env: Readonly<Record<string, string>>;
  /**
   * For the script alone, and never in arguments or on a disk. A sandbox writes it to a file in memory that only the script can
   * read, and names that in `HOLDFAST_EXECUTION_SECRET_FILE`: an environment is inherited by everything that the script starts,
   * and printed by `env`. The backend host has no file system of its own, and uses the variable `HOLDFAST_EXECUTION_SECRET`.
   */
  secret?: string | undefined;
  /** Whether it may reach the network. Without, there is not even the host's loopback. */
  network: boolean;
  /** For backends that have images. */
  image: string;
  limits: SandboxLimits;
  onOutput(stream: OutputStream, text: string): void;
};

export type SandboxLimits = {
  memoryBytes: number;
  /** 1.5 is one processor and a half. */
  cpus: number;
  /** Processes and threads. */
  pids: number;
  /** What /work can hold. */
  diskBytes: number;
};

export type SandboxEnd = {
  /** Null: it was ended by `kill`. A script that dies by a signal has 128 and its number, as in a shell. */
  exitCode: number | null;
  /**
   * Limits that the run has hit, whether or not it survived that. `memory`: a process was killed for it. `pids`: a fork was
   * refused. `disk`: /work was full. `cpu`: it was held back in most of its time; see `isHeldBack`.
   */
  hit: readonly EnforcedLimit[];
};

export type SandboxRun = {
  /**
   * Resolves when nothing is left of the run: no process, whatever the script started, no cgroup, mount, container or
   * directory. Rejects with a message for a person when it could not be started, or when something of it could not be ended.
   */
  ended: Promise<SandboxEnd>;
  /** Ends everything that the script has started, at once. */
  kill(): void;
};

export type SandboxCheck = {
  backend: SandboxBackend;
  /** Undefined: it works. */
  problem?: SandboxProblem | undefined;
  limits: Record<EnforcedLimit, LimitCheck>;
};

/** Sentences for a person: what is missing, and what the owner of the host can change. */
export type SandboxProblem = { what: string; remedy: string };
/** `by`: what enforces it, such as "cgroup v1, controller memory". */
export type LimitCheck = { enforced: true; by: string } | ({ enforced: false } & SandboxProblem);

export const SECRET_VARIABLE = "HOLDFAST_EXECUTION_SECRET";
export const SECRET_FILE_VARIABLE = "HOLDFAST_EXECUTION_SECRET_FILE";
/** Where sandboxes have it: on a file system in memory. */
export const SECRET_FILE = "/run/holdfast/secret";

/** What a sandbox may put first on its path. */
export const MINIMAL_ENVIRONMENT = {
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  LANG: "C.UTF-8",
};

const PREFIX = "holdfast";

/** The name of a cgroup, a container or a label. `runIdOf` reads it. */
export function runTag(owner: string, id: string): string {
  return `${PREFIX}.${owner}.${id}`;
}

/** The id of a run of this owner; undefined for everything else. */
export function runIdOf(owner: string, tag: string): string | undefined {
  const prefix = runTag(owner, "");
  const id = tag.startsWith(prefix) ? tag.slice(prefix.length) : "";
  return isRunId(id) ? id : undefined;
}

export function isRunId(text: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text);
}

/** A short burst above the limit is no reason for a message: most programs start with one. */
export function isHeldBack({ periods, throttled }: { periods: number; throttled: number }): boolean {
  return throttled >= 5 && throttled * 2 >= periods;
}
