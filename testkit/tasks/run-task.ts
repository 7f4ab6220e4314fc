// Runs a task as the agent would: found by its name, parameters and result checked by its contract.

import { randomUUID } from "node:crypto";
import type { EnvironmentProfile } from "@holdfast/contracts/node/protocol";
import { type Host, TaskFailed, type Terminals } from "../../tasks/executor.ts";
import { loadCheckedType, loadExecutor } from "../../tasks/registry.ts";

export const noEndpoints: EnvironmentProfile = {
  name: "test",
  version: 1,
  endpoints: {},
  resolve: {},
  ca_sha256: [],
};

/** Of a host that no terminal is to be opened on. */
export const noTerminals: Terminals = {
  open: () => Promise.reject(new Error("there are no terminals in this test")),
  recover: async () => undefined,
};

export type Ran = { result: Record<string, unknown>; phases: string[]; progress: unknown[] };

export async function runTask(
  type: string,
  params: unknown,
  options: { taskId?: string; host?: Partial<Host>; onPhase?: (phase: string) => void; signal?: AbortSignal } = {},
): Promise<Ran> {
  const contract = await loadCheckedType(type);
  const executor = await loadExecutor(type);
  if (!contract || !executor) throw new Error(`there is no task type ${type}`);
  const phases: string[] = [];
  const progress: unknown[] = [];
  const host = {
    stateDir: "/nowhere",
    profile: noEndpoints,
    capabilities: [],
    account: "nobody",
    terminals: noTerminals,
    ...options.host,
  };
  const result = await executor.run({
    taskId: options.taskId ?? randomUUID(),
    params: contract.params.parse(params),
    secrets: {},
    progress(phase: string, data?: unknown) {
      phases.push(phase);
      if (data !== undefined) progress.push(contract.progress.parse(data));
      options.onPhase?.(phase);
    },
    signal: options.signal ?? new AbortController().signal,
    host,
    fail: (code: string, message?: string) => {
      if (!Object.hasOwn(contract.failures, code)) throw new Error(`${type} does not declare the failure ${code}`);
      return new TaskFailed(code, message);
    },
  });
  return { result: contract.result.parse(result) as Record<string, unknown>, phases, progress };
}

/** The failure that it ends with; a success or any other error throws. */
export async function failureOf(run: Promise<unknown>): Promise<{ code: string; message: string }> {
  const outcome = await run.then(
    (ran) => ({ ran }),
    (error: unknown) => ({ error }),
  );
  if ("error" in outcome && outcome.error instanceof TaskFailed)
    return { code: outcome.error.code, message: outcome.error.message };
  if ("error" in outcome) throw outcome.error;
  throw new Error(`it succeeded: ${JSON.stringify(outcome.ran)}`);
}
