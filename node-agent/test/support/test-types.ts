// Task types that exist only in tests: each does what the test gives it.

import type { Executor } from "@holdfast/tasks/executor";
import { type AnyTaskType, taskType } from "@holdfast/tasks/type";
import { z } from "zod";
import type { LoadedType } from "../../src/executor/run.ts";

type Task = Parameters<Executor["run"]>[0];

export function testType(
  run: (task: Task) => Promise<unknown>,
  declared: Partial<AnyTaskType> = {},
  more: Pick<Executor, "recover" | "cancel"> = {},
): LoadedType {
  const contract = taskType({
    type: "test.one",
    summary: "Does what a test wants",
    kind: "observation",
    idempotent: true,
    timeoutSeconds: 60,
    expiresAfterSeconds: 300,
    concurrency: 4,
    capabilities: [],
    byHand: false,
    resultBytes: 4096,
    params: z.looseObject({}),
    progress: z.strictObject({ percent: z.number() }),
    result: z.strictObject({ said: z.string() }),
    failures: { disk_on_fire: { message: "The disk is on fire.", nextStep: "Leave the building." } },
  });
  return { contract: { ...contract, ...declared }, executor: { run: run as Executor["run"], ...more } };
}

export function loaderOf(types: Record<string, LoadedType>): (name: string) => Promise<LoadedType | undefined> {
  return async (name) => types[name];
}

/** A door that a test opens: what runs waits in front of it. */
export function gate() {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { passed: promise, open: resolve };
}
