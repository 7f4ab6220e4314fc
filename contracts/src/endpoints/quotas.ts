// Quotas: how many allocations may exist at a time. All count that are not released, also failed ones.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { Id } from "../fields.ts";

const Limit = z.int().min(0).max(100_000);
const Usage = z.strictObject({ limit: z.int(), used: z.int() });

export const Quotas = z.strictObject({
  organization: Usage.describe("All allocations of the organization. The platform operator sets the limit."),
  per_owner: z.int().describe("For each owner without an individual limit."),
  own: Usage.nullable().describe("The caller's; null for the local operator, who owns none."),
  /** For administrators: who has a limit of their own, and who has allocations. */
  members: z.array(
    Usage.extend({
      user_id: Id,
      email: z.string(),
      own_limit: z.boolean().describe("False: `per_owner` applies."),
    }),
  ),
});
export type Quotas = z.infer<typeof Quotas>;

export const getQuotas = endpoint({
  name: "getQuotas",
  noun: "quotas",
  method: "GET",
  path: "/v1/quotas",
  summary: "Read the allocation limits and the number of allocations",
  access: { scope: "allocations:read" },
  answer: Quotas,
});

export const updateQuotas = endpoint({
  name: "updateQuotas",
  noun: "quotas",
  method: "PATCH",
  path: "/v1/quotas",
  summary: "Change the allocation limits",
  description:
    "`organization` is for the platform operator, `per_owner` for administrators. Existing allocations above a lower limit are kept.",
  access: { scope: "allocations:admin" },
  action: "quota.update",
  body: z
    .strictObject({ organization: Limit.optional(), per_owner: Limit.optional() })
    .refine((body) => Object.keys(body).length > 0, "organization, per_owner or both are required"),
  answer: Quotas,
});

export const updateMemberQuota = endpoint({
  name: "updateMemberQuota",
  noun: "quotas",
  method: "PATCH",
  path: "/v1/quotas/members/{user_id}",
  summary: "Set an individual allocation limit for a member",
  access: { scope: "allocations:admin" },
  action: "quota.update_member",
  params: z.strictObject({ user_id: Id }),
  body: z.strictObject({ limit: Limit.nullable().describe("Null: `per_owner` applies again.") }),
  answer: Quotas,
});
