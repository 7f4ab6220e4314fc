// Allocations: a tenant's place on a node. Bare metal first: an OS user of their own.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { Id, Time } from "../fields.ts";
import { TaskFailure } from "../node/protocol.ts";
import { PageQuery, pageOf } from "../public/pagination.ts";
import { userStates } from "../reasons/vocabulary.ts";
import { Task } from "./tasks.ts";

export const allocationStatuses = ["requested", "active", "releasing", "released", "failed"] as const;
export const AllocationStatus = z.enum(allocationStatuses);
export type AllocationStatus = z.infer<typeof AllocationStatus>;

export const UserName = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,30}$/, "1 to 31 lower-case letters, digits and hyphens, starting with a letter")
  .describe("Name of the OS user.");
/** One line of an authorized_keys file, without options: they could run commands. */
export const SshPublicKey = z
  .string()
  .trim()
  .max(2000)
  .regex(
    /^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)|sk-ssh-ed25519@openssh\.com|sk-ecdsa-sha2-nistp256@openssh\.com) [A-Za-z0-9+/]+={0,2}( [^\r\n\0]{0,200})?$/,
    "a line as in id_ed25519.pub: type, key and an optional comment",
  );

/** `view`: see it and its state. `use`: open terminals and repair it too. `manage`: release and share it too. */
export const AllocationAccess = z.enum(["view", "use", "manage"]);
export type AllocationAccess = z.infer<typeof AllocationAccess>;

/** What the node said about the user when the allocation was released. */
export const AllocationRemoval = z.enum([
  "removed",
  "nothing_to_remove",
  "left_alone",
  "own_account",
  "unconfirmed",
]);
export type AllocationRemoval = z.infer<typeof AllocationRemoval>;

const AllocationOwner = z.strictObject({
  type: z
    .enum(["user", "token"])
    .describe("`token`: an API token created by the local operator, without a person."),
  id: Id,
  name: z.string().describe("An email address, or the token's name."),
  active: z
    .boolean()
    .describe("False: no longer a member, or the token is revoked; administrators can transfer or release it."),
});

/** One of five states in plain words. Never a reason, a node's details, or anything of another tenant. */
const userStateFields = {
  state: z.enum(userStates),
  title: z.string(),
  message: z.string(),
};

export const Allocation = z.strictObject({
  id: Id,
  owner: AllocationOwner.nullable().describe("Null: no owner; administrators can transfer or release it."),
  access: AllocationAccess.describe("What the caller may do with it."),
  access_until: Time.nullable().describe("When the caller's grant expires."),
  project_id: Id,
  node_id: Id,
  node_name: z.string(),
  username: z.string(),
  status: AllocationStatus,
  user_state: z
    .strictObject({ ...userStateFields, since: Time })
    .nullable()
    .describe("How the node behind it affects it. Null: it failed or was released."),
  /** Why it failed, or what it waits for. */
  reason: TaskFailure.nullable(),
  /** The task that works on it now, or worked on it last. */
  task_id: Id.nullable(),
  /** The agent has no root: the user is the agent's own account, which is shared and never removed. */
  own_account: z.boolean(),
  home: z.string().nullable(),
  created_by: z.string(),
  created_at: Time,
  active_at: Time.nullable(),
  released_at: Time.nullable(),
  removal: AllocationRemoval.nullable().describe(
    "What happened to the user, once released. `left_alone`: a user of that name exists that Holdfast did not create. " +
      "`unconfirmed`: the node was retired before it reported. Null: not released, or released before this was recorded.",
  ),
  revision: z.int(),
});
export type Allocation = z.infer<typeof Allocation>;

const params = z.strictObject({ allocation_id: Id });

export const createAllocation = endpoint({
  name: "createAllocation",
  noun: "allocations",
  method: "POST",
  path: "/v1/allocations",
  summary: "Create a user on a node",
  access: { scope: "allocations:write" },
  action: "allocation.create",
  creates: true,
  body: z.strictObject({
    node_id: Id,
    username: UserName,
    project_id: Id.optional().describe("Default: the organization's only or oldest project."),
    ssh_keys: z.array(SshPublicKey).max(20).default([]),
    owner_id: Id.optional().describe("The member who owns it (administrators only). Default: the caller."),
  }),
  answer: Allocation,
  errors: ["node_not_active", "allocation_exists", "own_account_only", "project_required", "quota_exceeded"],
});

export const listAllocations = endpoint({
  name: "listAllocations",
  noun: "allocations",
  method: "GET",
  path: "/v1/allocations",
  summary: "List the allocations you own, administer or were granted, newest first",
  access: { scope: "allocations:read" },
  query: PageQuery.extend({
    node_id: Id.optional(),
    project_id: Id.optional(),
    status: AllocationStatus.optional(),
    owner: z
      .union([z.enum(["me", "none"]), Id])
      .optional()
      .describe("A member's id, `me`, or `none`: without an active owner."),
  }),
  answer: pageOf(Allocation),
});

export const getAllocation = endpoint({
  name: "getAllocation",
  noun: "allocations",
  method: "GET",
  path: "/v1/allocations/{allocation_id}",
  summary: "Read an allocation, or wait for its next change",
  access: { scope: "allocations:read" },
  params,
  query: z.strictObject({
    wait_seconds: z.coerce.number().int().min(0).max(25).default(0),
    revision: z.coerce.number().int().min(0).optional(),
  }),
  answer: Allocation,
});

export const AllocationNotification = z.strictObject({
  id: Id,
  allocation_id: Id,
  ...userStateFields,
  at: Time,
  incident_id: Id.nullable().describe("For operators of the node; null to everybody else."),
});
export type AllocationNotification = z.infer<typeof AllocationNotification>;

export const listAllocationNotifications = endpoint({
  name: "listAllocationNotifications",
  noun: "allocations",
  method: "GET",
  path: "/v1/allocations/{allocation_id}/notifications",
  summary: "List the changes of an allocation's user state, newest first",
  access: { scope: "allocations:read" },
  params,
  query: PageQuery,
  answer: pageOf(AllocationNotification),
});

export const releaseAllocation = endpoint({
  name: "releaseAllocation",
  noun: "allocations",
  method: "POST",
  path: "/v1/allocations/{allocation_id}/release",
  summary: "Release an allocation: close its terminals and remove its user",
  access: { scope: "allocations:write" },
  action: "allocation.release",
  params,
  answer: Allocation,
});

export const repairAllocation = endpoint({
  name: "repairAllocation",
  noun: "allocations",
  method: "POST",
  path: "/v1/allocations/{allocation_id}/repair",
  summary: "Restore an allocation's user that was deleted or damaged on the node",
  description:
    "Returns the task that checks the user and restores what is missing: group and account with the same uid, the " +
    "login shell, and the home directory if it is gone. What is in the home is not changed. Read the task for the " +
    "result: `restored` is empty if nothing was missing. A name, uid or home that belongs to another user is not taken over.",
  access: { scope: "allocations:write" },
  action: "allocation.repair",
  params,
  answer: Task,
  errors: ["allocation_not_active", "node_not_active", "capability_missing"],
});

export const transferAllocation = endpoint({
  name: "transferAllocation",
  noun: "allocations",
  method: "POST",
  path: "/v1/allocations/{allocation_id}/transfer",
  summary: "Make another member the owner of an allocation",
  description:
    "All grants end, and terminals of people who no longer have access close. The user on the node keeps its files and SSH keys.",
  access: { scope: "allocations:admin" },
  action: "allocation.transfer",
  params,
  body: z.strictObject({ owner_id: Id.describe("A member of the organization.") }),
  answer: Allocation,
  errors: ["quota_exceeded"],
});

export const GrantLevel = z.enum(["view", "use"]);
export type GrantLevel = z.infer<typeof GrantLevel>;

const DAY_SECONDS = 86_400;
const grantSeconds = { min: 60, default: 7 * DAY_SECONDS, max: 90 * DAY_SECONDS };

export const AllocationGrant = z.strictObject({
  user_id: Id,
  email: z.string(),
  name: z.string(),
  level: GrantLevel,
  granted_by: z.string(),
  granted_at: Time,
  expires_at: Time,
});
export type AllocationGrant = z.infer<typeof AllocationGrant>;

export const createAllocationGrant = endpoint({
  name: "createAllocationGrant",
  noun: "allocations",
  method: "POST",
  path: "/v1/allocations/{allocation_id}/grants",
  summary: "Share an allocation with a member for a limited time",
  description:
    "`view`: see it and its state. `use`: also open terminals. A second grant to the same member replaces the first.",
  access: { scope: "allocations:write" },
  action: "allocation.grant",
  params,
  body: z.strictObject({
    user_id: Id.describe("A member of the organization."),
    level: GrantLevel.default("view"),
    expires_in_seconds: z
      .int()
      .min(grantSeconds.min)
      .max(grantSeconds.max)
      .default(grantSeconds.default)
      .describe("One minute to 90 days; default: 7 days."),
  }),
  answer: AllocationGrant,
  errors: ["conflict"],
});

export const listAllocationGrants = endpoint({
  name: "listAllocationGrants",
  noun: "allocations",
  method: "GET",
  path: "/v1/allocations/{allocation_id}/grants",
  summary: "List the grants of an allocation",
  access: { scope: "allocations:read" },
  params,
  answer: z.strictObject({ items: z.array(AllocationGrant) }),
});

export const revokeAllocationGrant = endpoint({
  name: "revokeAllocationGrant",
  noun: "allocations",
  method: "DELETE",
  path: "/v1/allocations/{allocation_id}/grants/{user_id}",
  summary: "Revoke a grant; the member's terminals there close within seconds",
  access: { scope: "allocations:write" },
  action: "allocation.revoke_grant",
  params: z.strictObject({ allocation_id: Id, user_id: Id }),
});
