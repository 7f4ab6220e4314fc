// What a task type declares. One folder below tasks/ is one type, named as on the wire:
//   contract.ts  default export of `taskType(…)`: read by the api, the agent and the reference
//   contract.generated.ts  the contract as agents have it, written by `npm run generate`
//   execute.ts   default export of `executor<typeof contract>(…)`: read by the agent only, when such a task comes
//   simulate.ts  default export of `simulation(…)`, if simulated nodes have the type
// Nothing else has to change for a new type.

import type { FailureEntry } from "@holdfast/contracts/node/task-failures";
import type { z } from "zod";

export type TaskType<
  Params extends z.ZodObject = z.ZodObject,
  Progress extends z.ZodType = z.ZodType,
  Result extends z.ZodType = z.ZodType,
  Failure extends string = string,
> = {
  /** The name on the wire, and of the folder. */
  type: string;
  summary: string;
  /** An observation changes nothing and may be lost; a desired state is to be reached. */
  kind: "observation" | "desired_state";
  /** Running it twice is the same as running it once: only then may it be delivered again after it began. */
  idempotent: boolean;
  /** How long it may run. */
  timeoutSeconds: number;
  /** How long it may wait to begin, unless its producer says otherwise. */
  expiresAfterSeconds: number;
  /** How many run on one node at a time. */
  concurrency: number;
  /** One of these is needed on the node; empty: every agent can. */
  capabilities: readonly string[];
  /** Whether people may run it by hand; otherwise only the control plane's own nouns do. */
  byHand: boolean;
  /** Largest result in bytes of JSON; room for it is kept in the journal while it runs. */
  resultBytes: number;
  params: Params;
  /**
   * Names of values that travel beside the params: stored only sealed, until the task ends, and in the agent's memory alone. All
   * of them are needed, and only the control plane's own nouns can provide them.
   */
  secrets?: readonly string[];
  progress: Progress;
  result: Result;
  /** Failures of this type beside the common ones. */
  failures: Record<Failure, FailureEntry>;
  /** Tasks of one node with the same key run one after the other, in the order they were made. */
  orderKey?: (params: z.output<Params>) => string;
};

export function taskType<
  Params extends z.ZodObject,
  Progress extends z.ZodType,
  Result extends z.ZodType,
  Failure extends string,
>(declaration: TaskType<Params, Progress, Result, Failure>): TaskType<Params, Progress, Result, Failure> {
  return declaration;
}

/** Any type, where only the declaration matters. */
// biome-ignore lint/suspicious/noExplicitAny: the only form that every type is assignable to
export type AnyTaskType = TaskType<any, any, any, any>;
