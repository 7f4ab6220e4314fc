// The platform as a whole, for its operator.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { Email, Time } from "../fields.ts";

export const BackgroundJob = z.strictObject({
  name: z.string(),
  runs_in: z
    .enum(["one worker", "each worker", "each api"])
    .describe(
      "`one worker`: one of all workers runs each turn. `each …`: every process of that kind runs it for itself.",
    ),
  every_seconds: z.number().nullable().describe("Null until a process has reported it."),
  state: z
    .enum(["waiting", "ok", "failing"])
    .describe("`waiting`: has not run yet. `failing`: the last turn failed; the next one tries again."),
  last_started_at: Time.nullable(),
  last_duration_ms: z.number().nullable(),
  last_result: z
    .record(z.string(), z.number())
    .nullable()
    .describe("How much the last successful turn did, by kind."),
  turns: z.number().int(),
  overruns: z.number().int().describe("Turns that were due while the one before still ran, and were left out."),
  failures: z.number().int(),
  last_failed_at: Time.nullable(),
  last_failure: z.string().nullable(),
});
export type BackgroundJob = z.infer<typeof BackgroundJob>;

const canaryStates = ["accepted", "rejected", "unreachable"] as const;

const CanaryResult = z.strictObject({
  endpoint: z.string().describe("Of the environment profile, such as `node_api`."),
  url: z.string(),
  address: z.string().nullable().describe("That the name in the URL leads to; null: to none."),
  ingress: z.string().nullable().describe("The ingress that a canary came through last; null: none."),
  state: z
    .enum(canaryStates)
    .describe(
      "`rejected`: certificates of the signing CA are not accepted there, so none are issued. `unreachable`: not known.",
    ),
  why: z.string().nullable(),
  checked_at: Time,
});
export type CanaryResult = z.infer<typeof CanaryResult>;

const PlatformStatus = z.strictObject({
  instance_id: z.string(),
  version: z.string(),
  worker: z.strictObject({ ok: z.boolean(), last_seen_at: Time.nullable() }),
  database: z.strictObject({ ok: z.boolean(), version: z.string(), migrations: z.number().int() }),
  administrator_exists: z.boolean(),
  canaries: z
    .array(CanaryResult)
    .describe("Whether each address that nodes use accepts certificates of the CA that signs theirs."),
  jobs: z.array(BackgroundJob).describe("Background jobs; counts are of the processes that run now."),
});

export const getPlatformStatus = endpoint({
  name: "getPlatformStatus",
  noun: "platform",
  method: "GET",
  path: "/v1/platform/status",
  summary: "Read the status of the platform's processes",
  access: "operator",
  answer: PlatformStatus,
});

export const createAdminLink = endpoint({
  name: "createAdminLink",
  noun: "platform",
  method: "POST",
  path: "/v1/platform/admin-links",
  summary: "Create a one-time sign-in link",
  description:
    "Works once within 15 minutes and replaces the previous one. Without an administrator it creates the first; " +
    "with one, or for the account named, it lets that person set a new password.",
  access: "operator",
  action: "admin_link.create",
  creates: true,
  body: z.strictObject({
    email: Email.optional().describe("The account; default: the only administrator's."),
  }),
  answer: z.strictObject({ url: z.string(), email: z.string().nullable(), expires_at: Time }),
  errors: ["conflict", "not_found"],
});
