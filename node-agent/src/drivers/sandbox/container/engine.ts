// How docker and podman differ, as data. Everything else about containers is common to both.

import type { EnforcedLimit } from "@holdfast/contracts/execution/limits";
import type { LimitCheck, SandboxProblem } from "../driver.ts";

export type EngineName = "docker" | "podman";

export type Engine = {
  name: EngineName;
  /** Prints what this engine can do here, as JSON. */
  info: readonly string[];
  facts(info: unknown): EngineFacts;
  /** Ends and removes a container, without giving it time to end by itself. */
  remove: readonly string[];
  /** Of `run`, in addition to those of both engines. */
  arguments(facts: { rootless: boolean }): string[];
  /** Option of a file system in memory by which it belongs to the user of the script. */
  ownedBy(user: { uid: number; gid: number }): string;
  /** Messages of the engine, and what they mean. The first that matches counts. */
  problems: readonly { pattern: RegExp; explain(context: ProblemContext): SandboxProblem }[];
};

export type ProblemContext = { image: string; user: string };

export type EngineFacts = {
  /** What the engine itself reports as wrong. */
  problem?: string | undefined;
  rootless: boolean;
  /** File with the engine's filter of system calls, where that has to be narrowed. */
  seccompProfile?: string | undefined;
  limits: Record<Exclude<EnforcedLimit, "disk">, LimitCheck>;
};

type LimitNames = Record<Exclude<EnforcedLimit, "disk">, boolean>;

/** `able`: by controller; `who`: as in "docker, cgroup v1". */
export function limitsOf(
  able: LimitNames,
  { who, remedy }: { who: string; remedy: string },
): EngineFacts["limits"] {
  const one = (limit: keyof LimitNames): LimitCheck =>
    able[limit]
      ? { enforced: true, by: `${who}, controller ${limit}` }
      : { enforced: false, what: `${who} cannot limit ${limit} on this host`, remedy };
  return { memory: one("memory"), pids: one("pids"), cpu: one("cpu") };
}

export const missingImage = (pull: string) => ({
  pattern: /no such image|image not known|unable to find image|does not resolve to an image|short-name/i,
  explain: ({ image }: ProblemContext) => ({
    what: `this host does not have the image ${image}`,
    remedy: `run: ${pull} ${image}`,
  }),
});

export const noShell = {
  pattern: /"sh": executable file not found|"sh": .*no such file|stat sh: no such file/i,
  explain: ({ image }: ProblemContext) => ({
    what: `the image ${image} has no sh`,
    remedy: "choose an image with a shell",
  }),
};
