// VM hosts: nodes with the capability `vm_host`, with their capacity and what keeps leases from them.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { Id, Time } from "../fields.ts";
import { NodeStatus } from "../node/protocol.ts";
import { VmAccelerator, VmStray } from "../node/vm-host.ts";
import { NodeConnection } from "./nodes.ts";

const Amount = z.strictObject({ vcpus: z.int(), memory_mib: z.int(), disk_mib: z.int() });

export const VmHost = z.strictObject({
  id: Id.describe("Of the node."),
  name: z.string(),
  platform: z.string().describe("`family/flavor/arch`, such as `linux/debian/x64`."),
  status: NodeStatus,
  connection: NodeConnection,
  enabled: z.boolean(),
  schedulable: z.boolean().describe("It can take a lease now."),
  not_schedulable: z.string().nullable().describe("Why not, and what to do about it."),
  accelerator: VmAccelerator.nullable().describe("Selected by its boot probe; null: not known yet."),
  accelerators: z.array(z.strictObject({ name: VmAccelerator, usable: z.boolean(), detail: z.string() })),
  qemu_version: z.string().nullable(),
  network: z.string().nullable(),
  cpu_free: z.int().describe("Allocatable, less what leases have reserved."),
  ram_free_mb: z.int().describe("In MiB; allocatable, less what leases have reserved."),
  capacity: z.strictObject({ physical: Amount, allocatable: Amount, reserved: Amount, free: Amount }),
  leases: z.int(),
  warm_vms: z
    .array(z.strictObject({ vm_id: Id, image_id: z.string(), vcpus: z.int(), memory_mib: z.int() }))
    .describe(
      "Booted ahead of leases, and paused. A lease of their image and size takes one; they give their room to others.",
    ),
  most_vms: z.int(),
  io_pressure_percent: z.number().nullable(),
  images: z.array(
    z.strictObject({
      id: z.string(),
      sha256: z.string().nullable(),
      in_catalogue: z.boolean().describe("The catalogue has it with this digest."),
      references: z.int(),
      problem: z.string().nullable(),
      fetched: z.boolean().describe("The host fetched it itself."),
    }),
  ),
  image_sources: z.array(z.string()).describe("Where its owner lets it fetch images from."),
  heartbeat_at: Time.nullable(),
  inventory_at: Time.nullable(),
  strays: z.array(VmStray).describe("What the last inventory found beside VMs with a lease."),
});
export type VmHost = z.infer<typeof VmHost>;

export const listHosts = endpoint({
  name: "listHosts",
  noun: "hosts",
  method: "GET",
  path: "/v1/hosts",
  summary: "List VM hosts",
  access: { scope: "nodes:read" },
  answer: z.strictObject({ items: z.array(VmHost) }),
});

const one = z.strictObject({ host_id: Id });

export const getHost = endpoint({
  name: "getHost",
  noun: "hosts",
  method: "GET",
  path: "/v1/hosts/{host_id}",
  summary: "Show a VM host",
  access: { scope: "nodes:read" },
  params: one,
  answer: VmHost,
});

export const updateHost = endpoint({
  name: "updateHost",
  noun: "hosts",
  method: "PATCH",
  path: "/v1/hosts/{host_id}",
  summary: "Enable or disable a VM host",
  description: "A disabled host gets no new leases. Those that it has are not changed.",
  access: { scope: "nodes:write" },
  action: "host.update",
  params: one,
  body: z.strictObject({ enabled: z.boolean() }),
  answer: VmHost,
});

export const cleanHost = endpoint({
  name: "cleanHost",
  noun: "hosts",
  method: "POST",
  path: "/v1/hosts/{host_id}/clean",
  summary: "Remove what no lease needs from a VM host, or explain what would be removed",
  description:
    "Returns the task that does it on the host. Only what carries the tag of the host's agent is removed. VMs without a lease are " +
    "found from heartbeats and removed by tasks of their own; with `dry_run` they are explained with the rest.",
  access: { scope: "nodes:write" },
  action: "host.clean",
  params: one,
  body: z.strictObject({ dry_run: z.boolean().default(false) }),
  answer: z.strictObject({ task_id: Id }),
  errors: ["node_not_active", "capability_missing"],
});
