// holdfast host: VM hosts: list, show, enable, disable, clean, rotate-token.

import type { Client } from "@holdfast/contracts/client";
import { cleanHost, getHost, listHosts, updateHost, type VmHost } from "@holdfast/contracts/endpoints/hosts";
import { getTask, terminalStatuses } from "@holdfast/contracts/endpoints/tasks";
import type { VmInventory } from "@holdfast/contracts/node/vm-host";
import { bytesInWords } from "@holdfast/contracts/words/bytes";
import { Command } from "commander";
import { connect, type ServerOptions, withServerOptions } from "../../client/connect.ts";
import { findNode } from "../../client/find-node.ts";
import { Refusal } from "../../failure.ts";
import { type Column, localTime, printResult, table } from "../../output.ts";
import { addRotateToken } from "./rotate-token.ts";

const mib = (value: number) => bytesInWords(value * 1024 ** 2);

const hostRows: Column<VmHost>[] = [
  { title: "host", of: (row) => row.name },
  { title: "platform", of: (row) => row.platform },
  { title: "accelerator", of: (row) => row.accelerator ?? "not known yet" },
  { title: "enabled", of: (row) => (row.enabled ? "yes" : "no") },
  { title: "schedulable", of: (row) => (row.schedulable ? "yes" : "no") },
  { title: "VMs", of: (row) => `${row.leases} of ${row.most_vms}` },
  { title: "CPU free", of: (row) => `${row.cpu_free} of ${row.capacity.allocatable.vcpus}` },
  { title: "memory free", of: (row) => `${mib(row.ram_free_mb)} of ${mib(row.capacity.allocatable.memory_mib)}` },
];

export function hostCommand(): Command {
  const host = new Command("host").description("nodes that run VMs");
  withServerOptions(host.command("list"))
    .description("list VM hosts with their capacity")
    .action(async (options: ServerOptions) => {
      const client = await connect(options);
      printResult(options, await client(listHosts, {}), ({ items }) =>
        items.length === 0
          ? "No VM hosts. Install QEMU on a node and set HOLDFAST_VM_HOST=on for its agent; it appears here by itself."
          : table(items, hostRows),
      );
    });
  withServerOptions(host.command("show"))
    .description("show a VM host: platform, accelerators, capacity, images, strays")
    .argument("<host>", "id or name")
    .action(async (wanted: string, options: ServerOptions) => {
      const client = await connect(options);
      printResult(
        options,
        await client(getHost, { params: { host_id: await idOf(client, wanted) } }),
        describeHost,
      );
    });
  for (const enabled of [true, false]) {
    withServerOptions(host.command(enabled ? "enable" : "disable"))
      .description(enabled ? "let a host get leases again" : "give a host no new leases; those it has stay")
      .argument("<host>", "id or name")
      .action(async (wanted: string, options: ServerOptions) => {
        const client = await connect(options);
        const params = { host_id: await idOf(client, wanted) };
        const changed = await client(updateHost, { params, body: { enabled } });
        printResult(options, changed, describeChange);
      });
  }
  withServerOptions(host.command("clean"))
    .description("remove what carries the agent's tag and no lease needs; VMs of others are never touched")
    .argument("<host>", "id or name")
    .option("--dry-run", "explain what would be removed, and remove nothing")
    .action(async (wanted: string, options: ServerOptions & { dryRun?: boolean }) => {
      const client = await connect(options);
      const params = { host_id: await idOf(client, wanted) };
      const { task_id } = await client(cleanHost, { params, body: { dry_run: options.dryRun ?? false } });
      printResult(options, await inventoryOf(client, task_id), describeStrays);
    });
  addRotateToken(host);
  return host;
}

const idOf = async (client: Client, wanted: string) => (await findNode(client, wanted)).id;

async function inventoryOf(client: Client, taskId: string): Promise<VmInventory> {
  for (let revision: number | undefined; ; ) {
    const task = await client(getTask, { params: { task_id: taskId }, query: { wait_seconds: 30, revision } });
    revision = task.revision;
    if (!terminalStatuses.has(task.status)) continue;
    if (task.status === "completed") return task.result as VmInventory;
    throw new Refusal(task.failure?.code ?? task.status, {
      message: task.failure?.message ?? `The task ${taskId} ended without a result: ${task.status}.`,
      nextStep: task.failure?.next_step ?? `Run \`holdfast task show ${taskId}\`.`,
    });
  }
}

const actionWords = { removed: "removed", would_remove: "would be removed", kept: "kept" } as const;

function describeStrays({ strays }: VmInventory): string {
  if (strays.length === 0) return "Nothing is left behind on the host.";
  return strays.map(({ kind, name, action, why }) => `${kind} ${name}: ${actionWords[action]}: ${why}`).join("\n");
}

function describeChange({ name, enabled, schedulable, not_schedulable }: VmHost): string {
  if (!enabled) return `Host ${name} is disabled. It gets no new leases; the VMs that it has stay.`;
  return schedulable
    ? `Host ${name} is enabled.`
    : `Host ${name} is enabled, but gets no lease now. ${not_schedulable}`;
}

function describeHost(host: VmHost): string {
  const { physical, allocatable, free } = host.capacity;
  const amount = (of: keyof VmHost["capacity"]["free"], show: (value: number) => string) =>
    `${show(free[of])} free of ${show(allocatable[of])} allocatable, ${show(physical[of])} physical`;
  const rows: [string, string | null][] = [
    ["platform", host.platform],
    ["enabled", host.enabled ? "yes" : "no"],
    ["schedulable", host.schedulable ? "yes" : `no. ${host.not_schedulable}`],
    ["accelerator", host.accelerator],
    ...host.accelerators.map(({ name, usable, detail }): [string, string] => [
      "",
      `${name}: ${usable ? "usable" : "not usable"}, ${detail}`,
    ]),
    ["QEMU", host.qemu_version],
    ["network", host.network],
    ["CPU", amount("vcpus", String)],
    ["memory", amount("memory_mib", mib)],
    ["disk", amount("disk_mib", mib)],
    ["I/O pressure", host.io_pressure_percent === null ? null : `${host.io_pressure_percent} % in the last 10 s`],
    ["VMs", `${host.leases} of at most ${host.most_vms}`],
    ...host.warm_vms.map(({ vm_id, image_id, vcpus, memory_mib }): [string, string] => [
      "booted ahead",
      `${vm_id} of ${image_id}, ${vcpus} vCPU, ${mib(memory_mib)}`,
    ]),
    ["heartbeat", localTime(host.heartbeat_at)],
    ["inventory", localTime(host.inventory_at)],
    ["fetches from", host.image_sources.join(" ") || null],
    ...host.images.map(({ id, sha256, problem, in_catalogue }): [string, string] => [
      "image",
      `${id} (${sha256?.slice(0, 12) ?? "being checked"}…)${problem ? `: ${problem}` : in_catalogue ? "" : ": not in the catalogue"}`,
    ]),
    ...host.strays.map(({ kind, name, action, why }): [string, string] => [
      "stray",
      `${kind} ${name}: ${actionWords[action]}: ${why}`,
    ]),
  ];
  const shown = rows.filter((row): row is [string, string] => row[1] !== null);
  return [`${host.name} ${host.id}`, ...shown.map(([label, value]) => `  ${label.padEnd(12)} ${value}`)].join(
    "\n",
  );
}
