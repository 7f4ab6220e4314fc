// Allocations: a tenant's place on a node. Bare metal first: an OS user of their own.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { Id, Time } from "../fields.ts";
import { TaskFailure } from "../node-protocol.ts";
import { PageQuery, pageOf } from "../pagination.ts";

export const allocationStatuses = ["requested", "active", "releasing", "released", "failed"] as const;
export const AllocationStatus = z.enum(allocationStatuses);
export type AllocationStatus = z.infer<typeof AllocationStatus>;

export const UserName = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,30}$/, "1 to 31 lower-case letters, digits and hyphens, beginning with a letter")
  .describe("Name of the OS user.");
/** One line of an authorized_keys file, without options: they could run commands. */
export const SshPublicKey = z
  .string()
  .trim()
  .max(2000)
  .regex(
    /^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)|sk-ssh-ed25519@openssh\.com|sk-ecdsa-sha2-nistp256@openssh\.com) [A-Za-z0-9+/]+={0,2}( [^\r\n\0]{0,200})?$/,
    "a line as in id_ed25519.pub: type, key and perhaps a comment",
  );

export const Allocation = z.strictObject({
  id: Id,
  project_id: Id,
  node_id: Id,
  node_name: z.string(),
  username: z.string(),
  status: AllocationStatus,
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
  revision: z.int(),
});
export type Allocation = z.infer<typeof Allocation>;

const params = z.strictObject({ allocation_id: Id });

export const createAllocation = endpoint({
  name: "createAllocation",
  noun: "allocations",
  method: "POST",
  path: "/v1/allocations",
  summary: "Get a user on a node",
  access: { scope: "allocations:write" },
  action: "allocation.create",
  creates: true,
  body: z.strictObject({
    node_id: Id,
    username: UserName,
    project_id: Id.optional().describe("Left out: the organization's only or oldest project."),
    ssh_keys: z.array(SshPublicKey).max(20).default([]),
  }),
  answer: Allocation,
  errors: ["node_not_active", "allocation_exists", "own_account_only", "project_required"],
});

export const listAllocations = endpoint({
  name: "listAllocations",
  noun: "allocations",
  method: "GET",
  path: "/v1/allocations",
  summary: "List allocations, newest first",
  access: { scope: "allocations:read" },
  query: PageQuery.extend({
    node_id: Id.optional(),
    project_id: Id.optional(),
    status: AllocationStatus.optional(),
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

export const releaseAllocation = endpoint({
  name: "releaseAllocation",
  noun: "allocations",
  method: "POST",
  path: "/v1/allocations/{allocation_id}/release",
  summary: "Give an allocation back: its sessions end and its user is removed",
  access: { scope: "allocations:write" },
  action: "allocation.release",
  params,
  answer: Allocation,
});
