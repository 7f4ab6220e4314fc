// The task signing keys, for the platform's operator. Nodes receive them with their heartbeats.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { Time } from "../fields.ts";

export const TaskSigningKeyState = z.enum(["next", "signing", "verifying"]);
export type TaskSigningKeyState = z.infer<typeof TaskSigningKeyState>;

export const TaskSigningKey = z.strictObject({
  kid: z.string(),
  /** `next` verifies and does not sign yet; `signing` signs every new task; `verifying` only verifies. */
  state: TaskSigningKeyState,
  created_at: Time,
  signs_from: Time,
  /** Null while no other key follows it. */
  verifies_until: Time.nullable(),
});
export type TaskSigningKey = z.infer<typeof TaskSigningKey>;

export const listTaskSigningKeys = endpoint({
  name: "listTaskSigningKeys",
  noun: "platform",
  method: "GET",
  path: "/v1/platform/task-signing-keys",
  summary: "List the keys that sign tasks or are still accepted, newest first",
  access: "operator",
  answer: z.strictObject({ items: z.array(TaskSigningKey) }),
});

export const rotateTaskSigningKey = endpoint({
  name: "rotateTaskSigningKey",
  noun: "platform",
  method: "POST",
  path: "/v1/platform/task-signing-keys",
  summary: "Create the next task signing key",
  description:
    "It is published to nodes immediately and signs two minutes later. The current key is accepted for two more days, beyond the " +
    "end of every task that it has signed.",
  access: "operator",
  action: "task_signing_key.rotate",
  creates: true,
  answer: z.strictObject({ present: TaskSigningKey, next: TaskSigningKey }),
  errors: ["key_rotation_too_soon"],
});
