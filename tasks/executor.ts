// What a task type does on the host. Types only and one identity function: the agent loads no
// schema library until a task comes.

import type { EnvironmentProfile, HostFacts } from "@holdfast/contracts/node-protocol";
import type { z } from "zod";
import type { AnyTaskType, TaskType } from "./type.ts";

/** The host as a task may use it. */
export type Host = {
  /** Root-owned when the agent is root. Task types keep their own files in a folder below it. */
  stateDir: string;
  profile: EnvironmentProfile;
  capabilities: readonly string[];
  /** The account the agent runs as. */
  account: string;
  terminals: Terminals;
};

/** Shells whose bytes go through the terminal gateway. */
export type Terminals = {
  /**
   * Resolves when the shell runs and the gateway has been told. Otherwise it throws, a TaskFailed where the reason
   * is known, and leaves nothing behind.
   */
  open(terminal: {
    sessionId: string;
    correlationId: string;
    size: { cols: number; rows: number };
    /** Called while the gateway is dialled. */
    user: () => Promise<ShellUser>;
    withinMs: number;
    /** How long the shell may be without a way to the gateway. */
    detachedMs: number;
    signal: AbortSignal;
  }): Promise<{ pid: number; offset: number; private_directories: boolean; control_group: boolean }>;
};

/** As the host's user database has it; an empty shell is the system's default one. */
export type ShellUser = { name: string; uid: number; gid: number; home: string; shell: string };

export type Run<T extends AnyTaskType> =
  T extends TaskType<infer P, infer G, infer R, infer F>
    ? (task: {
        params: z.output<P>;
        /** Enters a phase: its time is measured until the next one; the newest is shown while it runs. */
        progress: (phase: string, data?: z.input<G>) => void;
        /** Aborted when the task is cancelled or out of time: stop, undo what is half done, then throw. */
        signal: AbortSignal;
        host: Host;
        /** Ends the task with a failure of its type. */
        fail: (code: F, message?: string) => TaskFailed;
      }) => Promise<z.input<R>>
    : never;

export type Executor<T extends AnyTaskType = AnyTaskType> = { run: Run<T> };

export function executor<T extends AnyTaskType>(_contract: T, executor: Executor<T>): Executor<T> {
  return executor;
}

/** A node without a host: what it tells about itself is invented. */
export type SimulatedNode = { facts: HostFacts; startedAt: number };
export type Simulation<T extends AnyTaskType = AnyTaskType> = (node: SimulatedNode) => Executor<T>;

/** What a simulated node does instead: it neither looks at this host nor changes it. */
export function simulation<T extends AnyTaskType>(_contract: T, simulation: Simulation<T>): Simulation<T> {
  return simulation;
}

/** Thrown to end a task with one of its failures. */
export class TaskFailed extends Error {
  override name = "TaskFailed";
  readonly code: string;

  constructor(code: string, message?: string) {
    super(message ?? "");
    this.code = code;
  }
}
