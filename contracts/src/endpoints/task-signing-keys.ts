// The keys that sign tasks, for the platform's operator. Nodes learn of them with their heartbeats.

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
  summary: "The keys that sign tasks or still verify them, newest first",
  access: "operator",
  answer: z.strictObject({ items: z.array(TaskSigningKey) }),
});

export const rotateTaskSigningKey = endpoint({
  name: "rotateTaskSigningKey",
  noun: "platform",
  method: "POST",
  path: "/v1/platform/task-signing-keys",
  summary: "Make the next key that signs tasks",
  description:
    "Nodes are told of it at once; it signs two minutes later. The present key verifies for two more days, beyond the " +
    "end of every task that it has signed.",
  access: "operator",
  action: "task_signing_key.rotate",
  creates: true,
  answer: z.strictObject({ present: TaskSigningKey, next: TaskSigningKey }),
  errors: ["key_rotation_too_soon"],
});
