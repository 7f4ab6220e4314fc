// Leases: one request for one VM, from the request until nothing of it is left on a host (ADR 51).

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { AnyText, Id, Text, Time } from "../fields.ts";
import { TaskFailure } from "../node/protocol.ts";
import { SerialPlace, VmAccelerator, VmCommandLine, VmImageId } from "../node/vm-host.ts";
import { PageQuery, pageOf } from "../public/pagination.ts";
import { vmProfiles } from "../vm/profiles.ts";

const VmProfile = z.enum(vmProfiles);

const LeaseLabel = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/, "up to 63 letters, digits, dots, underscores and hyphens");

/** As agents report it. */
const Architecture = z.string().regex(/^[a-z0-9_]{1,20}$/, "the architecture of a host, such as x64 or arm64");

export const leaseStates = [
  "requested",
  "provisioning",
  "booting",
  "connected",
  "running",
  "terminating",
  "terminated",
  "failed",
  "orphaned",
] as const;
export const LeaseState = z.enum(leaseStates);
export type LeaseState = z.infer<typeof LeaseState>;
/** Nothing of it is on a host any more, or it never was on one. */
export const endedLeaseStates: ReadonlySet<LeaseState> = new Set(["terminated", "failed"]);

/** Why a host was not chosen for a lease. */
const hostRefusals = [
  "arch_differs",
  "accelerator_missing",
  "too_large",
  "node_not_active",
  "disabled",
  "heartbeat_late",
  "host_problem",
  "probe_pending",
  "image_missing",
  "image_pending",
  "image_differs",
  "image_unusable",
  "image_source_refused",
  "image_fetchable",
  "image_fetching",
  "image_fetch_failed",
  "total_cap",
  "label_cap",
  "host_cap",
  "held",
  "full",
  "not_best",
] as const;
export const HostRefusal = z.enum(hostRefusals);
export type HostRefusal = z.infer<typeof HostRefusal>;

export const HostNotChosen = z.strictObject({
  host_id: Id,
  name: z.string(),
  reason: HostRefusal,
  message: z.string().describe("Why, and what to do about it."),
});
export type HostNotChosen = z.infer<typeof HostNotChosen>;

export const Lease = z.strictObject({
  id: Id,
  status: LeaseState,
  label: z.string().nullable(),
  image_id: z.string(),
  image_sha256: z.string().describe("Of the image when the lease was requested: the VM gets this one or none."),
  profile: VmProfile,
  vcpus: z.int(),
  memory_mib: z.int(),
  disk_gib: z.int(),
  arch: Architecture.nullable().describe("Null: any."),
  accelerator: VmAccelerator.nullable().describe("Null: whichever the host has selected."),
  host_id: Id.nullable(),
  host_name: z.string().nullable(),
  vm_id: Id.nullable().describe("Of its VM on the host; another one each time the lease is given to a host."),
  generation: z.int().describe("Counts how often it was given to a host."),
  work: z.string().nullable().describe("What runs in the VM, as whoever uses it reported."),
  reason: TaskFailure.nullable().describe("Why it ended, or what it waits for."),
  created_by: z.string(),
  correlation_id: z.string(),
  ttl_seconds: z.int(),
  created_at: Time,
  wait_until: Time.describe("Until then it waits for a host."),
  placed_at: Time.nullable(),
  booted_at: Time.nullable(),
  connect_deadline_at: Time.nullable(),
  connected_at: Time.nullable(),
  disconnected_at: Time.nullable().describe("Since when its guest is disconnected."),
  running_at: Time.nullable(),
  expires_at: Time.nullable().describe("The VM is terminated then, whatever it does."),
  finished_at: Time.nullable(),
  revision: z.int(),
});
export type Lease = z.infer<typeof Lease>;

export const LeaseEventEntry = z.strictObject({
  at: Time,
  event: z.string(),
  from: LeaseState.nullable(),
  to: LeaseState.nullable().describe("Null: the state did not change; the entry is evidence."),
  generation: z.int(),
  message: z.string().nullable(),
});
export type LeaseEventEntry = z.infer<typeof LeaseEventEntry>;

export const createLease = endpoint({
  name: "createLease",
  noun: "leases",
  method: "POST",
  path: "/v1/leases",
  summary: "Request a VM",
  description:
    "A label fills in what the request leaves out. The lease waits until a host with room for it exists, at most `wait_seconds`.",
  access: { scope: "leases:write" },
  action: "lease.create",
  creates: true,
  body: z.strictObject({
    label: LeaseLabel.optional(),
    image_id: VmImageId.optional(),
    profile: VmProfile.optional(),
    arch: Architecture.optional(),
    accelerator: VmAccelerator.optional(),
    ttl_seconds: z.int().min(60).max(604_800).optional().describe("By default HOLDFAST_VM_LEASE_TTL_SECONDS."),
    wait_seconds: z.int().min(1).max(86_400).default(3600),
  }),
  answer: Lease,
  errors: ["image_unknown", "image_retired", "lease_label_unknown", "lease_image_required"],
});

export const listLeases = endpoint({
  name: "listLeases",
  noun: "leases",
  method: "GET",
  path: "/v1/leases",
  summary: "List leases, newest first",
  access: { scope: "leases:read" },
  query: PageQuery.extend({
    status: LeaseState.optional(),
    live: z.enum(["true", "false"]).optional().describe("`true`: only those that have not ended."),
    host_id: Id.optional(),
    label: AnyText.max(63).optional(),
  }),
  answer: pageOf(Lease),
});

const one = z.strictObject({ lease_id: Id });

export const getLease = endpoint({
  name: "getLease",
  noun: "leases",
  method: "GET",
  path: "/v1/leases/{lease_id}",
  summary: "Show a lease with its timeline",
  access: { scope: "leases:read" },
  params: one,
  query: z.strictObject({
    wait_seconds: z.coerce.number().int().min(0).max(60).default(0).describe("Wait for a change this long."),
    revision: z.coerce.number().int().optional().describe("Respond at once if the lease has another one."),
  }),
  answer: Lease.extend({ timeline: z.array(LeaseEventEntry) }),
});

export const explainLease = endpoint({
  name: "explainLease",
  noun: "leases",
  method: "GET",
  path: "/v1/leases/{lease_id}/explain",
  summary: "Say for each host why it was not chosen",
  description: "For a lease that waits: as of now. For one that was placed: as of the moment it was placed.",
  access: { scope: "leases:read" },
  params: one,
  answer: z.strictObject({
    lease: Lease,
    at: Time,
    chosen: z.strictObject({ host_id: Id, name: z.string(), message: z.string() }).nullable(),
    not_chosen: z.array(HostNotChosen),
    summary: z.string(),
  }),
});

export const readLeaseLog = endpoint({
  name: "readLeaseLog",
  noun: "leases",
  method: "GET",
  path: "/v1/leases/{lease_id}/log",
  summary: "Read the serial log of a VM, or wait for more of it",
  description:
    "Without `from`: the end of the log, at most 64 KiB. With `from`: what came after an earlier response. To follow a log, repeat " +
    "the request with `next` and `wait_seconds` until `ended`. The log on the host is limited; once the VM is gone, its last 8 KiB " +
    "are kept for as long as its tasks are.",
  access: { scope: "leases:read" },
  params: one,
  query: z.strictObject({
    from: SerialPlace.optional().describe("`next` of the response before."),
    wait_seconds: z.coerce.number().int().min(0).max(20).default(0).describe("Wait for more this long."),
  }),
  answer: z.strictObject({
    text: z.string().describe("Without control characters and escape sequences."),
    next: z.string().nullable().describe("Null: there is no VM to read more from."),
    skipped: z.boolean().describe("Output before this text was dropped, because the log is limited."),
    ended: z.boolean().describe("The VM is gone. Without `from`, the text is the end of its log that was kept."),
  }),
  errors: ["lease_log_unavailable"],
});

export const startLeaseWork = endpoint({
  name: "startLeaseWork",
  noun: "leases",
  method: "POST",
  path: "/v1/leases/{lease_id}/work",
  summary: "Report that work has started in the VM of a lease",
  description: "The lease becomes `running`. Only while its guest is connected.",
  access: { scope: "leases:write" },
  action: "lease.start_work",
  params: one,
  body: z.strictObject({ work: Text.min(1).max(200).describe("What runs there, such as the name of a build.") }),
  answer: Lease,
  errors: ["lease_not_connected"],
});

export const runLeaseCommand = endpoint({
  name: "runLeaseCommand",
  noun: "leases",
  method: "POST",
  path: "/v1/leases/{lease_id}/commands",
  summary: "Start a command in the VM of a lease",
  description:
    "A command id is started at most once, so a request may be repeated. The lease becomes `running`. Only while its guest is connected.",
  access: { scope: "leases:write" },
  action: "lease.run_command",
  params: one,
  body: z.strictObject({ command_id: Id.describe("Made by the caller."), command: VmCommandLine }),
  answer: z.strictObject({ task_id: Id.describe("The command was started when this task is completed.") }),
  errors: ["lease_not_connected"],
});

export const readLeaseOutput = endpoint({
  name: "readLeaseOutput",
  noun: "leases",
  method: "GET",
  path: "/v1/leases/{lease_id}/output",
  summary: "Read the output of a command in the VM of a lease",
  description:
    "The host is asked for it by a task, whose result has the next piece of output, the offset of the one after it, and the exit code. " +
    "The task ends when there is output, or after a few seconds without any.",
  access: { scope: "leases:read" },
  params: one,
  query: z.strictObject({
    command_id: Id,
    offset: z.coerce.number().int().min(0).default(0),
    read: Id.optional().describe("The task of the piece before, which the caller has: it is removed."),
  }),
  answer: z.strictObject({ task_id: Id }),
  errors: ["lease_not_connected"],
});

export const terminateLease = endpoint({
  name: "terminateLease",
  noun: "leases",
  method: "POST",
  path: "/v1/leases/{lease_id}/terminate",
  summary: "Terminate a lease: its VM is stopped and everything of it removed from the host",
  description: "One that has ended, or is terminating, does not change.",
  access: { scope: "leases:write" },
  action: "lease.terminate",
  params: one,
  answer: Lease,
});

export const LeaseLabelPolicy = z.strictObject({
  label: z.string(),
  image_id: z.string(),
  profile: VmProfile,
  arch: Architecture.nullable(),
  accelerator: VmAccelerator.nullable(),
  max_leases: z
    .int()
    .nullable()
    .describe("How many leases with this label have a host at a time; null: no limit."),
});
export type LeaseLabelPolicy = z.infer<typeof LeaseLabelPolicy>;

export const listLeaseLabels = endpoint({
  name: "listLeaseLabels",
  noun: "leases",
  method: "GET",
  path: "/v1/lease-labels",
  summary: "List labels: what a request with one of them gets",
  access: { scope: "leases:read" },
  answer: z.strictObject({ items: z.array(LeaseLabelPolicy) }),
});

export const setLeaseLabel = endpoint({
  name: "setLeaseLabel",
  noun: "leases",
  method: "POST",
  path: "/v1/lease-labels",
  summary: "Set what requests with a label get",
  description: "Leases that exist keep what they have.",
  access: { scope: "nodes:write" },
  action: "lease_label.set",
  body: z.strictObject({
    label: LeaseLabel,
    image_id: VmImageId,
    profile: VmProfile.default("small"),
    arch: Architecture.nullable().default(null),
    accelerator: VmAccelerator.nullable().default(null),
    max_leases: z.int().min(0).max(10_000).nullable().default(null),
  }),
  answer: LeaseLabelPolicy,
  errors: ["image_unknown", "image_retired"],
});

export const removeLeaseLabel = endpoint({
  name: "removeLeaseLabel",
  noun: "leases",
  method: "DELETE",
  path: "/v1/lease-labels/{label}",
  summary: "Remove a label",
  access: { scope: "nodes:write" },
  action: "lease_label.remove",
  params: z.strictObject({ label: LeaseLabel }),
});
