// Secrets of tasks: values that travel beside the params of a task, and are stored only sealed, until it ends (ADR 56).

import { randomBytes } from "node:crypto";
import { ApiError } from "@holdfast/contracts/errors";
import type { Log } from "@holdfast/service/log";
import type { AnyTaskType } from "@holdfast/tasks/type";
import { openBox, sealBox } from "../mechanisms/sealing/envelope.ts";
import type { Keyring } from "../mechanisms/sealing/keyring.ts";

/** By the names that the type declares. */
export type TaskSecrets = Readonly<Record<string, string>>;

export type TaskVault = {
  seal(taskId: string, secrets: TaskSecrets): Buffer;
  /** Throws when the box belongs to another task, or was sealed with another key. */
  open(taskId: string, sealed: Buffer): TaskSecrets;
};

/** The task's id is associated data of the box: secrets cannot be moved to another task. */
export async function openTaskVault(keyring: Keyring): Promise<TaskVault> {
  const key = await keyring.getOrCreate("task-secrets", () => randomBytes(32));
  const contextOf = (taskId: string) => `task:${taskId}`;
  return {
    seal: (taskId, secrets) => sealBox(key, contextOf(taskId), Buffer.from(JSON.stringify(secrets))),
    open: (taskId, sealed) => JSON.parse(openBox(key, contextOf(taskId), sealed).toString()) as TaskSecrets,
  };
}

type Sealed = { task_id: string; sealed_secrets: Buffer | null };

export type OpenerOptions = { vault: Pick<TaskVault, "open">; log: Log };

/** Without those that cannot be opened: the agent refuses such a task, and the others of its node go on. */
export function opener({ vault, log }: OpenerOptions) {
  return ({ task_id, sealed_secrets }: Sealed): TaskSecrets | undefined => {
    if (sealed_secrets === null) return undefined;
    try {
      return vault.open(task_id, sealed_secrets);
    } catch (error) {
      log.error({ err: error, task_id }, "could not open the secrets of a task");
      return undefined;
    }
  };
}

/** Undefined: the type has none. Refuses anything but exactly the declared ones, and never repeats a value. */
export function checkedSecrets(type: AnyTaskType, given: TaskSecrets = {}): TaskSecrets | undefined {
  const declared = type.secrets ?? [];
  const missing = declared.filter((name) => !given[name]);
  const unknown = Object.keys(given).filter((name) => !declared.includes(name));
  const fields = [
    ...missing.map((name) => ({ field: `secrets.${name}`, problem: "is missing or empty" })),
    ...unknown.map((name) => ({ field: `secrets.${name}`, problem: "is not a secret of this task type" })),
  ];
  if (fields.length > 0) throw new ApiError("task_params_invalid", { details: { fields } });
  return declared.length > 0 ? given : undefined;
}
