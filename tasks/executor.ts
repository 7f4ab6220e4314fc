// What a task type does on the host. A type imports its contract here for the types alone: no schema library comes with
// what runs on nodes (ADR 35).

import type { EnvironmentProfile, HostFacts } from "@holdfast/contracts/node/protocol";
import type {
  FetchedVmImage,
  LaunchedVm,
  RemovedVmImage,
  TerminatedVm,
  VmCommand,
  VmInventory,
  VmLaunch,
  VmOutput,
  VmOutputQuery,
} from "@holdfast/contracts/node/vm-host";
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
  /** Absent: this host is no VM host. */
  vms?: Vms | undefined;
};

export type OpenedShell = { pid: number; offset: number; private_directories: boolean; control_group: boolean };

/** Shells whose bytes go through the terminal gateway. */
export type Terminals = {
  /**
   * Resolves when the shell runs and the gateway knows of it. Otherwise it throws, a TaskFailed where the reason
   * is known, and leaves nothing behind.
   */
  open(terminal: {
    /** Noted beside the shell, for `recover`. */
    taskId: string;
    sessionId: string;
    correlationId: string;
    size: { cols: number; rows: number };
    /** What it is at. Called while the gateway is dialled. */
    at: () => Promise<{ user: ShellUser } | { console: SerialConsole }>;
    withinMs: number;
    /** How long the shell may be without a way to the gateway. */
    detachedMs: number;
    signal: AbortSignal;
  }): Promise<OpenedShell>;
  /**
   * Finds the shell that an earlier agent process started for this task. Resolves once the shell is connected to the
   * gateway again; undefined: there is none, or it ended first.
   */
  recover(taskId: string, signal: AbortSignal): Promise<OpenedShell | undefined>;
};

/** Of a running VM: the directory with its serial log and input, and its process. */
export type SerialConsole = { directory: string; pid: number; startTicks: string };

/** Output of a VM's serial port. `place`: where the next reading begins. */
export type SerialOutput = { text: string; place: string; skipped: boolean };

/** The VMs of this host. They outlive the agent. */
export type Vms = {
  /** Resolves when QEMU runs. Otherwise it throws, a TaskFailed where the reason is known, and leaves nothing behind. */
  launch(vm: {
    taskId: string;
    wanted: VmLaunch;
    /** Called before each phase; may throw to stop the launch, which is then undone. */
    enter: (phase: string) => void;
    signal: AbortSignal;
  }): Promise<LaunchedVm>;
  /** The VM that an earlier agent process launched for this task; undefined: whatever was begun is undone. */
  recover(taskId: string): Promise<LaunchedVm | undefined>;
  terminate(vm: {
    vmId: string;
    /** The guest gets this long to shut down by itself. */
    graceMs: number;
    enter: (phase: string) => void;
    signal: AbortSignal;
  }): Promise<TerminatedVm>;
  /** Starts a command in the guest, once for each id. */
  exec(command: VmCommand): Promise<void>;
  /** Resolves when there is more than the caller has, the command has ended, or the time is over. */
  output(query: VmOutputQuery, signal: AbortSignal): Promise<VmOutput>;
  /** Throws a TaskFailed `terminal_vm_ended` if no such VM runs here. */
  console(vmId: string): Promise<SerialConsole>;
  /**
   * From a place on, or the last bytes. Without output it waits that long for some. Undefined: there is no such VM here.
   */
  serialLog(options: {
    vmId: string;
    from: string | null;
    most: number;
    waitMs: number;
    signal: AbortSignal;
  }): Promise<SerialOutput | undefined>;
  /** With what belongs to no VM, or to none of `expected`; see the task type vm.inventory. */
  inventory(options: { expected: readonly string[] | null; remove: boolean }): Promise<VmInventory>;
  /** Resolves when the image is in place with this digest. What was received of it before an interruption is kept. */
  fetchImage(task: {
    image: { id: string; sha256: string };
    url: string;
    enter: (phase: string) => void;
    progress: (progress: { received_bytes: number; total_bytes: number | null }) => void;
    signal: AbortSignal;
  }): Promise<FetchedVmImage>;
  /** Only an image that was fetched, and that no VM needs. */
  removeImage(image: { id: string; sha256: string }): Promise<RemovedVmImage>;
};

/** As the host's user database has it; an empty shell is the system's default one. */
export type ShellUser = { name: string; uid: number; gid: number; home: string; shell: string };

/** What `run`, `recover` and `cancel` have in common. */
type Common<Failure extends string> = {
  /** The same for `run`, and for a later `recover` or `cancel`: phase records are kept under it. */
  taskId: string;
  host: Host;
  /** Ends the task with a failure of its type. */
  fail: (code: Failure, message?: string) => TaskFailed;
};

type ExecutorOf<Params, Progress, Result, Failure extends string> = {
  run: (
    task: Common<Failure> & {
      params: Params;
      /** By the names that the contract declares. They are removed from whatever the task reports. */
      secrets: Readonly<Record<string, string>>;
      /** Enters a phase: its time is measured until the next one; the newest is shown while it runs. */
      progress: (phase: string, data?: Progress) => void;
      /** Aborted when the task is cancelled or out of time: stop, undo what is half done, then throw. */
      signal: AbortSignal;
    },
  ) => Promise<Result>;

  /**
   * Called once when the agent starts and finds a task of this type that was started and has no result; only for types
   * that are not idempotent, because `run` never executes again for such a task. There are no params: the agent's
   * journal does not keep them. Whatever the type needs, `run` wrote down under the task's id before it acted.
   *
   * Returns the result if the work is complete or could be completed; undefined if whatever was begun is undone, or
   * nothing is known of it: the task is then reported as interrupted. Throws `fail(…)` to report another state. An agent
   * that ends meanwhile calls it again at its next start.
   */
  recover?: (task: Common<Failure> & { signal: AbortSignal }) => Promise<Result | undefined>;

  /**
   * Called once, besides the abort of the signal, when a running task is cancelled or out of time: for work that goes
   * on outside of `run`, such as a process, and has to be ended there. `run` is waited for until the grace period ends.
   */
  cancel?: (task: Common<Failure> & { params: Params; reason: "cancelled" | "timed_out" }) => Promise<void>;
};

export type Executor<T extends AnyTaskType = AnyTaskType> =
  T extends TaskType<infer P, infer G, infer R, infer F>
    ? ExecutorOf<z.output<P>, z.input<G>, z.input<R>, F>
    : never;

/** `executor<typeof contract>({…})`; without the contract's type nothing fits. */
export function executor<T extends AnyTaskType = never>(executor: Executor<NoInfer<T>>): Executor<T> {
  return executor;
}

/** A node without a host: what it reports about itself is invented. */
export type SimulatedNode = { facts: HostFacts; startedAt: number };
export type Simulation<T extends AnyTaskType = AnyTaskType> = (node: SimulatedNode) => Executor<T>;

/** What a simulated node does instead: it neither looks at this host nor changes it. */
export function simulation<T extends AnyTaskType = never>(simulation: Simulation<NoInfer<T>>): Simulation<T> {
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
