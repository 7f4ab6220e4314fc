// The platform as a whole, for its operator.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { Email, Time } from "../fields.ts";

const PlatformStatus = z.strictObject({
  instance_id: z.string(),
  version: z.string(),
  worker: z.strictObject({ ok: z.boolean(), last_seen_at: Time.nullable() }),
  database: z.strictObject({ ok: z.boolean(), version: z.string(), migrations: z.number().int() }),
  administrator_exists: z.boolean(),
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
