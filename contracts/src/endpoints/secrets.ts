// Named secrets of an organization (ADR 49). No answer contains a value: a secret goes in, and comes out only on an agent, for one
// request.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { SecretName } from "../execution/dispatch.ts";
import { AnyText, Id, Time } from "../fields.ts";
import { ExecutionState } from "./executions.ts";

/** Of one organization. */
export const MOST_SECRETS = 1_000;
/** In characters. Shorter ones cannot be removed from the output of a step; see the agent's redaction. */
export const secretLength = { least: 8, most: 65_536 } as const;

const SecretValue = AnyText.min(
  secretLength.least,
  `must have at least ${secretLength.least} characters: a shorter value could not be removed from output`,
)
  .max(secretLength.most)
  .describe(`${secretLength.least} to ${secretLength.most} characters. It is never returned.`);

export const Secret = z.strictObject({
  id: Id,
  name: z.string(),
  version: z.int().describe("Counts the values that it has had. Only the newest is kept."),
  members_may_use: z
    .boolean()
    .describe("Whether steps that a member requests may use it. Otherwise only those of owners and admins."),
  created_by: z.string(),
  created_at: Time,
  changed_by: z.string().describe("Who set the value."),
  changed_at: Time,
  key_changed_at: Time.describe("When it was encrypted with its present data key."),
  uses: z.int().describe("Executions that got it, of those that are kept."),
  last_used_at: Time.nullable(),
});
export type Secret = z.infer<typeof Secret>;

export const SecretUse = z.strictObject({
  workflows: z
    .array(z.strictObject({ workflow_id: z.string(), uses: z.int(), last_used_at: Time }))
    .describe("Those that used it last, at most 20."),
  executions: z
    .array(
      z.strictObject({
        ...{ id: Id, request_id: z.string(), workflow_id: z.string(), version: z.int() },
        ...{ status: ExecutionState, used_at: Time },
      }),
    )
    .describe("Those that used it last, at most 20."),
});
export type SecretUse = z.infer<typeof SecretUse>;

const params = z.strictObject({ secret_id: Id });

export const listSecrets = endpoint({
  name: "listSecrets",
  noun: "secrets",
  method: "GET",
  path: "/v1/secrets",
  summary: "List secrets",
  description: "By name, without values. Members see those that they may use.",
  access: { scope: "secrets:read" },
  answer: z.strictObject({ items: z.array(Secret) }),
});

export const getSecret = endpoint({
  name: "getSecret",
  noun: "secrets",
  method: "GET",
  path: "/v1/secrets/{secret_id}",
  summary: "Show a secret and what used it, without its value",
  access: { scope: "secrets:read" },
  params,
  answer: Secret.extend({ used_by: SecretUse }),
});

/**
 * Not a create: an idempotency key would keep a digest of the request, and thereby of the value. Setting the same value again does
 * no harm.
 */
export const setSecret = endpoint({
  name: "setSecret",
  noun: "secrets",
  method: "POST",
  path: "/v1/secrets",
  summary: "Create a secret, or replace its value",
  description:
    "A replaced value is erased. Steps that were dispatched before keep the value that they were given. " +
    `An organization has at most ${MOST_SECRETS} secrets.`,
  access: { scope: "secrets:write" },
  action: "secret.set",
  body: z.strictObject({
    name: SecretName,
    value: SecretValue,
    members_may_use: z.boolean().optional().describe("Default: as it was; for a new secret, no."),
  }),
  answer: Secret,
  errors: ["conflict"],
  bodyLimit: 1024 * 1024,
});

export const rotateSecret = endpoint({
  name: "rotateSecret",
  noun: "secrets",
  method: "POST",
  path: "/v1/secrets/{secret_id}/rotate",
  summary: "Replace the value of a secret, or only the key that encrypts it",
  description:
    "With a value: the next version of the secret, encrypted with a new data key. Without: the same value and version, encrypted " +
    "with a new data key.",
  access: { scope: "secrets:write" },
  action: "secret.rotate",
  params,
  body: z.strictObject({ value: SecretValue.optional() }),
  answer: Secret,
  errors: ["conflict", "kek_missing"],
  bodyLimit: 1024 * 1024,
});

export const deleteSecret = endpoint({
  name: "deleteSecret",
  noun: "secrets",
  method: "DELETE",
  path: "/v1/secrets/{secret_id}",
  summary: "Delete a secret",
  description:
    "Steps that were dispatched before keep the value that they were given; later dispatches by its name are refused. Refused with " +
    "`secret_in_use` if kept executions used it, unless `force` is set.",
  access: { scope: "secrets:write" },
  action: "secret.delete",
  params,
  query: z.strictObject({ force: z.enum(["true", "false"]).default("false") }),
  errors: ["secret_in_use"],
});

const KekId = AnyText.min(1).max(200);

export const KekStatus = z.strictObject({
  current: z.string().describe("The id of the KEK under which this api seals."),
  previous: z.string().nullable().describe("The id of the second KEK that this api can open, if it has one."),
  sealed: z
    .array(z.strictObject({ kek_id: z.string(), platform_keys: z.int(), secrets: z.int() }))
    .describe(
      "Data keys by the KEK around them. Platform keys seal everything else: the CA, task signing, secrets of executions, webhooks.",
    ),
  apis: z
    .array(z.strictObject({ hostname: z.string(), kek_ids: z.array(z.string()).describe("The first one seals.") }))
    .describe("The api processes that run, as they reported their KEKs when they started."),
  waiting: z.int().describe("Data keys that are not under the current KEK."),
  unneeded: z
    .boolean()
    .describe("Every KEK but the current one can be removed from the configuration of all processes."),
  obstacles: z.array(z.string()).describe("Why not."),
});
export type KekStatus = z.infer<typeof KekStatus>;

export const getKekStatus = endpoint({
  name: "getKekStatus",
  noun: "platform",
  method: "GET",
  path: "/v1/platform/kek",
  summary: "Show which key-encryption keys are in use",
  access: "operator",
  answer: KekStatus,
});

export const rewrapKeys = endpoint({
  name: "rewrapKeys",
  noun: "platform",
  method: "POST",
  path: "/v1/platform/kek/rewrap",
  summary: "Rewrap some data keys under the current KEK",
  description:
    "One batch in one transaction; call it until `waiting` is 0. It may be interrupted at any moment, and repeated. Sealed values " +
    "are not opened.",
  access: "operator",
  action: "kek.rewrap",
  body: z.strictObject({
    to: KekId.describe("The KEK that must be the current one of the api that answers: replicas may differ."),
    limit: z.int().min(1).max(1_000).default(200),
  }),
  answer: z.strictObject({ rewrapped: z.int(), waiting: z.int() }),
  errors: ["kek_missing", "kek_differs"],
});
