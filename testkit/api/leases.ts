// Leases over a test's database: VM hosts that exist in the database only, and the engine that moves leases on, as an api
// replica runs it. Time passes by moving the deadlines of a row.

import type { TaskResultReport } from "@holdfast/contracts/node/protocol";
import type { ReportedVm, VmHostReport } from "@holdfast/contracts/node/vm-host";
import type { VmProfile } from "@holdfast/contracts/vm/profiles";
import { uuidv7 } from "@holdfast/kit/uuid";
import { loadAllContracts } from "@holdfast/tasks/registry";
import { systemActor } from "../../control-plane/src/audit/record.ts";
import { type Sql, withOrg } from "../../control-plane/src/database/connect.ts";
import { advanceLeases } from "../../control-plane/src/leases/advance.ts";
import { discoverHosts } from "../../control-plane/src/leases/hosts-view.ts";
import { takeInventories } from "../../control-plane/src/leases/inventory.ts";
import type { LeaseTasks } from "../../control-plane/src/leases/parts.ts";
import type { PlacementPolicy } from "../../control-plane/src/leases/place.ts";
import type { LeaseRow } from "../../control-plane/src/leases/queries.ts";
import { resolveRequest } from "../../control-plane/src/leases/resolve.ts";
import { insertLease } from "../../control-plane/src/leases/transitions/create.ts";
import { miscountedHosts } from "../../control-plane/src/leases/upkeep.ts";
import { openKeyring } from "../../control-plane/src/mechanisms/sealing/keyring.ts";
import { openSignals } from "../../control-plane/src/mechanisms/signals.ts";
import { createTaskEngine, openTaskPools, type TaskEngine } from "../../control-plane/src/tasks/engine.ts";
import { openTaskVault } from "../../control-plane/src/tasks/secrets.ts";
import { openTaskSigner } from "../../control-plane/src/tasks/signing.ts";
import { createTestDatabase, openRoles } from "../database/database.ts";
import { atEnd } from "../lifetime/at-end.ts";
import { quiet } from "./replica.ts";

export const IMAGE = { id: "debian-13", sha256: "ab".repeat(32) };

export const hostReport = (changes: Partial<VmHostReport> = {}): VmHostReport => ({
  qemu: { version: "10.0.2", path: "/usr/bin/qemu-system-x86_64" },
  accelerator: "kvm",
  accelerators: [
    { name: "kvm", usable: true, detail: "a guest booted" },
    { name: "tcg", usable: true, detail: "a guest booted" },
  ],
  network: { backend: "user", interface: null },
  capacity: capacityOf({ vcpus: 8, memory_mib: 16_384, disk_mib: 200 * 1024 }),
  io_pressure_percent: 0.5,
  images: [{ ...IMAGE, file_bytes: 1, virtual_bytes: 1, references: 0, problem: null, fetched: false }],
  image_sources: [],
  vms: [],
  warm_vms: [],
  problem: null,
  ...changes,
});

type Amount = VmHostReport["capacity"]["physical"];
export const capacityOf = (allocatable: Amount, most_vms = 64): VmHostReport["capacity"] => ({
  ...{ physical: allocatable, allocatable, free: allocatable, most_vms },
});

export type LeaseLab = {
  app: Sql;
  system: Sql;
  superuser: Sql;
  engine: TaskEngine;
  newOrg(): Promise<string>;
  newHost(orgId: string, report?: Partial<VmHostReport>): Promise<string>;
  /** As a heartbeat does it. */
  report(hostId: string, report: Partial<VmHostReport>): Promise<void>;
  newLease(orgId: string, wanted?: { profile?: VmProfile; label?: string; ttlSeconds?: number }): Promise<string>;
  advance(options?: { policy?: Partial<PlacementPolicy>; tasks?: LeaseTasks }): ReturnType<typeof advanceLeases>;
  inventories(): ReturnType<typeof takeInventories>;
  row(leaseId: string): Promise<LeaseRow & { terminate_task_id: string | null }>;
  events(leaseId: string): Promise<{ event: string; to_status: string | null; message: string | null }[]>;
  /** Takes the host's tasks, at most `room` of them, and reports these results. */
  respond(
    hostId: string,
    outcomeOf: (task: OfferedTask) => TaskResultReport["outcome"],
    options?: { room?: number },
  ): Promise<OfferedTask[]>;
  /** Hosts whose counts are not those of their leases. */
  miscounted(): Promise<string[]>;
};

export type OfferedTask = { task_id: string; task_type: string; generation: number; params: { vm_id: string } };

export async function openLeaseLab(): Promise<LeaseLab> {
  const database = await createTestDatabase();
  const { app, system, superuser } = openRoles(database);
  const signals = await openSignals(system, quiet);
  const keyring = await openKeyring(system, { current: { id: "test", key: Buffer.alloc(32, 7) } });
  const signer = await openTaskSigner(system, keyring, { log: quiet });
  const pools = openTaskPools({ url: database.systemUrl, application: "test" });
  const vault = await openTaskVault(keyring);
  const engine = createTaskEngine({ pools, signals, signer, vault, types: await loadAllContracts(), log: quiet });
  atEnd(async () => {
    await engine.stop();
    await signals.stop();
    await Promise.all([pools.swift.end({ timeout: 1 }), pools.durable.end({ timeout: 1 })]);
  });

  const lab: LeaseLab = {
    ...{ app, system, superuser, engine },
    async newOrg() {
      const id = uuidv7();
      await superuser`INSERT INTO organizations (id, slug, name) VALUES (${id}, ${`o${id.slice(-12)}`}, 'Lab')`;
      await superuser`
        INSERT INTO vm_images (org_id, id, source, sha256, created_by)
        VALUES (${id}, ${IMAGE.id}, 'manual_local', ${IMAGE.sha256}, 'test')`;
      return id;
    },
    async newHost(orgId, report) {
      const id = uuidv7();
      await superuser`
        INSERT INTO nodes (id, org_id, name, status) VALUES (${id}, ${orgId}, ${`host-${id.slice(-12)}`}, 'active')`;
      await superuser`
        INSERT INTO node_presence (node_id, org_id, heartbeat_at, instance_id, boot_id, clock_skew_ms, heartbeat)
        VALUES (${id}, ${orgId}, now(), ${uuidv7()}, 'boot', 0, ${superuser.json({
          facts: {
            capabilities: ["vm_host"],
            arch: "x64",
            os: { family: "linux", flavour: "debian", version: "13", kernel: "6.12" },
          },
          vm_host: hostReport(report),
        })})`;
      await discoverHosts(system);
      return id;
    },
    async report(hostId, report) {
      await superuser`
        UPDATE node_presence SET heartbeat_at = clock_timestamp(),
          heartbeat = (heartbeat::jsonb || ${JSON.stringify({ vm_host: hostReport(report) })}::text::jsonb)::json
        WHERE node_id = ${hostId}`;
    },
    async newLease(orgId, { profile = "small", label, ttlSeconds = 3600 } = {}) {
      const id = uuidv7();
      const image = { ...IMAGE, retired_at: null };
      const policy = { image_id: IMAGE.id, profile, arch: null, accelerator: null, max_leases: null };
      const labels = label === undefined ? [] : [{ ...policy, label }];
      const wanted = resolveRequest({ image_id: IMAGE.id, profile, label }, labels, [image]);
      const times = { ttlSeconds, waitSeconds: 3600, connectSeconds: 240, graceSeconds: 60 };
      await withOrg(app, orgId, (tx) =>
        insertLease(tx, { ...wanted, ...times, id, orgId, correlationId: uuidv7() }, systemActor("test")),
      );
      return id;
    },
    advance: ({ policy, tasks = engine } = {}) =>
      advanceLeases({
        ...{ system, tasks, log: quiet, onMoved: () => undefined },
        policy: { mostPerHost: 512, mostInTotal: 100_000, staleAfterSeconds: 120, ...policy },
      }),
    inventories: () => takeInventories({ system, tasks: engine, log: quiet, staleAfterSeconds: 120 }),
    async row(leaseId) {
      const [row] = await superuser<(LeaseRow & { terminate_task_id: string | null })[]>`
        SELECT * FROM vm_leases WHERE id = ${leaseId}`;
      if (!row) throw new Error(`there is no lease ${leaseId}`);
      return row;
    },
    events: (leaseId) => superuser`
      SELECT event, to_status, message FROM vm_lease_events WHERE lease_id = ${leaseId} ORDER BY id`,
    async respond(hostId, outcomeOf, { room = 64 } = {}) {
      const poll = { instanceId: "test", room, holding: [], waitMs: 0, signal: new AbortController().signal };
      const { tasks } = await engine.wait(hostId, poll);
      const offered = tasks as unknown as OfferedTask[];
      if (offered.length > 0) {
        await engine.results(
          hostId,
          offered.map((task) => ({
            task_id: task.task_id,
            generation: task.generation,
            timings: {},
            outcome: outcomeOf(task),
          })),
        );
      }
      return offered;
    },
    miscounted: () => miscountedHosts(superuser),
  };
  return lab;
}

/** What a host without faults reports. */
export function outcomeOf({ task_type, params }: OfferedTask): TaskResultReport["outcome"] {
  const { vm_id } = params;
  switch (task_type) {
    case "vm.launch":
      return {
        status: "succeeded",
        result: { vm_id, pid: 4711, accelerator: "kvm", network: "user", serial_log: "/var/log/serial" },
      };
    case "vm.terminate":
      return { status: "succeeded", result: { vm_id, existed: true, end: "terminated", serial_tail: "" } };
    default:
      return { status: "succeeded", result: { report: hostReport(), strays: [] } };
  }
}

export const failedWith = (code: string): TaskResultReport["outcome"] => ({
  status: "failed",
  failure: { code, message: "It did not work.", next_step: "Repair it." },
});

export const reportedVm = (
  vmId: string | null,
  state: ReportedVm["state"],
  end: ReportedVm["end"] = null,
): ReportedVm => ({
  ...{ vm_id: vmId ?? uuidv7(), state, end, connected_at: null, vcpus: 2, memory_mib: 4096, disk_mib: 40 * 1024 },
  image_id: IMAGE.id,
});
