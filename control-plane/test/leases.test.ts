// Leases with real PostgreSQL: crashes between steps, replicas at once, placement under concurrency, and the safety loop.

import type { VmProfile } from "@holdfast/contracts/vm/profiles";
import { uuidv7 } from "@holdfast/kit/uuid";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import {
  capacityOf,
  failedWith,
  IMAGE,
  type LeaseLab,
  openLeaseLab,
  outcomeOf,
  reportedVm,
} from "../../testkit/api/leases.ts";
import type { LeaseTasks } from "../src/leases/parts.ts";
import { applyEvents } from "../src/leases/transitions/apply.ts";
import { placeLease } from "../src/leases/transitions/place.ts";
import { removeOldLeases } from "../src/leases/upkeep.ts";

let lab: LeaseLab;
let org: string;
let host: string;

beforeAll(async () => {
  lab = await openLeaseLab();
  org = await lab.newOrg();
  host = await lab.newHost(org);
});

const tasksOf = (vmId: string | null) => lab.superuser<{ type: string; status: string }[]>`
  SELECT type, status FROM tasks WHERE params->>'vm_id' = ${vmId} ORDER BY id`;

/** Without a result of its node. */
const expire = (taskId: string | null, { generation = 0 } = {}) => lab.superuser`
  UPDATE tasks SET status = 'expired', finished_at = now(), generation = ${generation},
    failure = '{"code": "task_expired", "message": "", "next_step": ""}'
  WHERE id = ${taskId}`;

async function connected(): Promise<string> {
  const id = await lab.newLease(org, { profile: "tiny" });
  await lab.advance();
  await lab.respond(host, outcomeOf);
  await lab.advance();
  await lab.report(host, { vms: [reportedVm((await lab.row(id)).vm_id, "connected")] });
  await lab.advance();
  expect((await lab.row(id)).status).toBe("connected");
  return id;
}

async function end(id: string): Promise<void> {
  await lab.superuser`UPDATE vm_leases SET expires_at = now() WHERE id = ${id}`;
  await lab.advance();
  await lab.respond(host, outcomeOf);
  await lab.advance();
  expect((await lab.row(id)).status).toBe("terminated");
  await lab.report(host, { vms: [] });
}

describe("a crash", () => {
  /** Ends the process at this call: what was not committed before is gone. */
  const dyingAt = (call: keyof LeaseTasks): LeaseTasks => ({
    ...lab.engine,
    [call]: () => {
      throw new Error(`killed at ${call}`);
    },
  });

  it("VM-04 before the commit of a placement leaves the lease waiting, without a task", async () => {
    const id = await lab.newLease(org, { profile: "tiny" });
    const dying: LeaseTasks = {
      ...lab.engine,
      enqueue: async (...given) => {
        await lab.engine.enqueue(...given);
        throw new Error("killed after the task was inserted");
      },
    };
    await lab.advance({ tasks: dying });
    expect(await lab.row(id)).toMatchObject({ status: "requested", host_id: null, generation: 0 });
    expect(await lab.superuser`SELECT FROM tasks WHERE type = 'vm.launch' AND finished_at IS NULL`).toHaveLength(
      0,
    );
    expect(await lab.miscounted()).toEqual([]);
    await lab.advance();
    await lab.respond(host, outcomeOf);
    await lab.advance();
    expect(await lab.row(id)).toMatchObject({ status: "booting", generation: 1 });
    await end(id);
  });

  it("VM-04 after the commit of a placement loses nothing and launches nothing twice", async () => {
    const id = await lab.newLease(org, { profile: "tiny" });
    await lab.advance({ tasks: dyingAt("enqueued") }).catch(() => undefined);
    const placed = await lab.row(id);
    expect(placed.status).toBe("provisioning");
    await lab.advance();
    expect(await tasksOf(placed.vm_id)).toEqual([{ type: "vm.launch", status: "queued" }]);
    await lab.respond(host, outcomeOf);
    await lab.advance();
    expect((await lab.row(id)).vm_id).toBe(placed.vm_id);
    await end(id);
  });

  it("VM-05 while a removal is ordered, before or after its commit, ends with one VM removed once", async () => {
    const id = await connected();
    const { vm_id } = await lab.row(id);
    await lab.superuser`UPDATE vm_leases SET expires_at = now() WHERE id = ${id}`;
    await lab.advance({ tasks: dyingAt("enqueue") });
    expect(await lab.row(id)).toMatchObject({ status: "terminating", terminate_task_id: null });
    await lab.advance({ tasks: dyingAt("enqueued") }).catch(() => undefined);
    await lab.advance();
    expect((await tasksOf(vm_id)).filter(({ type }) => type === "vm.terminate")).toHaveLength(1);
    await lab.respond(host, outcomeOf);
    await lab.advance();
    expect(await lab.row(id)).toMatchObject({ status: "terminated", reason: { code: "ttl" } });
    await lab.report(host, { vms: [] });
  });

  it("VM-04 of a replica beside others: ten at once place, settle and end a lease once", async () => {
    const id = await lab.newLease(org, { profile: "tiny" });
    const together = () => Promise.all(Array.from({ length: 10 }, () => lab.advance()));
    await together();
    await lab.respond(host, outcomeOf);
    await together();
    await lab.report(host, { vms: [reportedVm((await lab.row(id)).vm_id, "connected")] });
    await together();
    await lab.superuser`UPDATE vm_leases SET expires_at = now() WHERE id = ${id}`;
    await together();
    await lab.respond(host, outcomeOf);
    await together();
    expect((await lab.events(id)).map(({ event }) => event)).toEqual([
      "request",
      "place",
      "launch_succeeded",
      "guest_connected",
      "ttl",
      "terminate_succeeded",
    ]);
    expect(await tasksOf((await lab.row(id)).vm_id)).toHaveLength(2);
    expect(await lab.miscounted()).toEqual([]);
    await lab.report(host, { vms: [] });
  });
});

describe("what two replicas saw at once", () => {
  it("VM-04 is noted once: a guest that is disconnected, and one that is back", async () => {
    const id = await connected();
    const { vm_id: vmId } = await lab.row(id);
    const twice = async (event: "guest_disconnected" | "guest_connected") => {
      await Promise.all([0, 1].map(() => applyEvents(lab.system, [{ leaseId: id, vmId, event }])));
    };
    await twice("guest_disconnected");
    const { disconnected_at } = await lab.row(id);
    expect(disconnected_at).not.toBeNull();
    await twice("guest_connected");
    expect((await lab.row(id)).disconnected_at).toBeNull();
    const seen = (await lab.events(id)).map(({ event }) => event);
    expect(seen.filter((event) => event === "guest_disconnected")).toHaveLength(1);
    expect(seen.filter((event) => event === "guest_connected")).toHaveLength(2);
    await end(id);
  });
});

describe("a launch", () => {
  it("VM-04 that no host was offered is placed again, with another VM", async () => {
    const id = await lab.newLease(org, { profile: "tiny" });
    await lab.advance();
    const first = await lab.row(id);
    await expire(first.launch_task_id);
    await lab.advance();
    const second = await lab.row(id);
    expect(second).toMatchObject({ status: "provisioning", generation: 2 });
    expect(second.vm_id).not.toBe(first.vm_id);
    // The first host ran it after all: its VM has no lease, and is evidence in the timeline of this one.
    await lab.report(host, { vms: [reportedVm(first.vm_id, "booting")] });
    await lab.advance();
    expect((await tasksOf(first.vm_id)).at(-1)).toEqual({ type: "vm.terminate", status: "queued" });
    expect((await lab.events(id)).at(-1)).toMatchObject({ event: "stale", to_status: null });
    await lab.respond(host, outcomeOf);
    await lab.advance();
    await end(id);
  });

  it("VM-04 without a result is removed, because the host may have begun", async () => {
    const id = await lab.newLease(org, { profile: "tiny" });
    await lab.advance();
    const { launch_task_id } = await lab.row(id);
    await expire(launch_task_id, { generation: 1 });
    await lab.advance();
    expect(await lab.row(id)).toMatchObject({ status: "terminating", reason: { code: "launch_lost" } });
    await lab.respond(host, outcomeOf);
    await lab.advance();
    expect((await lab.row(id)).status).toBe("terminated");
  });

  it("VM-09 that failed ends the lease with what the host reported, and frees the host", async () => {
    const id = await lab.newLease(org);
    await lab.advance();
    await lab.respond(host, () => failedWith("vm_image_missing"));
    await lab.advance();
    expect(await lab.row(id)).toMatchObject({ status: "failed", reason: { code: "vm_image_missing" } });
    const [row] = await lab.superuser`SELECT leases, reserved_vcpus FROM vm_hosts WHERE node_id = ${host}`;
    expect(row).toEqual({ leases: 0, reserved_vcpus: 0 });
  });
});

describe("the safety loop", () => {
  it("VM-05 finds a lease without a VM, removes what is left, and says so", async () => {
    const id = await connected();
    await lab.superuser`
      UPDATE vm_leases SET booted_at = now() - interval '1 minute', connected_at = now() - interval '1 minute' WHERE id = ${id}`;
    await lab.report(host, { vms: [] });
    await lab.advance();
    expect(await lab.row(id)).toMatchObject({ status: "orphaned", reason: { code: "vm_missing" } });
    expect(await lab.respond(host, () => failedWith("vm_not_removed"))).toMatchObject([
      { task_type: "vm.terminate" },
    ]);
    await lab.advance();
    expect(await lab.row(id)).toMatchObject({ status: "orphaned", reason: { code: "vm_not_removed" } });
    await lab.superuser`UPDATE vm_leases SET terminate_after = now() WHERE id = ${id}`;
    await lab.advance();
    await lab.respond(host, outcomeOf);
    await lab.advance();
    expect((await lab.row(id)).status).toBe("terminated");
  });

  it("VM-05 takes a VM that was just launched for missing only in a heartbeat that must list it", async () => {
    const id = await connected();
    await lab.report(host, { vms: [] });
    await lab.advance();
    expect((await lab.row(id)).status).toBe("connected");
    await end(id);
  });

  it("VM-05 removes a VM without a lease by its id, once, with an audit event", async () => {
    const stray = uuidv7();
    await lab.report(host, { vms: [reportedVm(stray, "connected")] });
    await Promise.all([lab.advance(), lab.advance(), lab.advance()]);
    await lab.report(host, { vms: [reportedVm(stray, "connected")] });
    await lab.advance();
    expect(await tasksOf(stray)).toEqual([{ type: "vm.terminate", status: "queued" }]);
    const audited = await lab.superuser`
      SELECT FROM audit_events WHERE action = 'host.remove_stray' AND details->>'vm_id' = ${stray}`;
    expect(audited).toHaveLength(1);
    await lab.respond(host, outcomeOf);
    await lab.report(host, { vms: [] });
  });

  it("VM-05 asks hosts to remove what no VM needs, without a list of VMs that could be out of date", async () => {
    await lab.inventories();
    const found = {
      kind: "overlay",
      name: "/var/lib/x.qcow2",
      vm_id: null,
      action: "removed",
      why: "no VM uses it",
    };
    const [asked] = await lab.respond(host, (task) => {
      const { result } = outcomeOf(task) as { result: object };
      return { status: "succeeded", result: { ...result, strays: [found] } };
    });
    expect(asked).toMatchObject({ task_type: "vm.inventory", params: { expected: null, remove: true } });
    expect(await lab.inventories()).toEqual({ stored: 1, asked: 0 });
    const [row] = await lab.superuser`SELECT strays FROM vm_hosts WHERE node_id = ${host}`;
    expect(row).toEqual({ strays: [found] });
    expect(await lab.superuser`SELECT FROM audit_events WHERE action = 'host.clean'`).toHaveLength(1);
    expect(await lab.superuser`SELECT FROM tasks WHERE id = ${asked?.task_id ?? null}`).toHaveLength(0);
  });

  it("VM-05 keeps a lease whose host is retired as orphaned, until a person ends it", async () => {
    const retired = await lab.newHost(org, {
      capacity: capacityOf({ vcpus: 64, memory_mib: 65_536, disk_mib: 2 ** 20 }),
    });
    const id = await lab.newLease(org, { profile: "large" });
    await lab.advance();
    expect((await lab.row(id)).host_id).toBe(retired);
    await lab.superuser`UPDATE nodes SET status = 'retired', revoked_at = now() WHERE id = ${retired}`;
    await lab.advance();
    expect(await lab.row(id)).toMatchObject({ status: "orphaned", reason: { code: "host_retired" } });
    await lab.advance();
    expect((await lab.row(id)).terminate_task_id).toBeNull();
  });
});

describe("placement", () => {
  it("VM-02 gives nothing to a host that is disabled, late, draining or without the image", async () => {
    const other = await lab.newOrg();
    const disabled = await lab.newHost(other);
    await lab.superuser`UPDATE vm_hosts SET enabled = false WHERE node_id = ${disabled}`;
    const late = await lab.newHost(other);
    await lab.superuser`UPDATE node_presence SET heartbeat_at = now() - interval '121 seconds' WHERE node_id = ${late}`;
    const draining = await lab.newHost(other);
    await lab.superuser`UPDATE nodes SET status = 'draining' WHERE id = ${draining}`;
    await lab.newHost(other, { images: [] });
    const changed = {
      ...IMAGE,
      sha256: "cd".repeat(32),
      file_bytes: 1,
      virtual_bytes: 1,
      references: 0,
      problem: null,
      fetched: false,
    };
    await lab.newHost(other, { images: [changed] });
    const id = await lab.newLease(other);
    await lab.advance();
    expect((await lab.row(id)).status).toBe("requested");
    await lab.superuser`UPDATE vm_hosts SET enabled = true WHERE node_id = ${disabled}`;
    await lab.advance();
    expect(await lab.row(id)).toMatchObject({ status: "provisioning", host_id: disabled });
  });

  describe("by a plan that is out of date", () => {
    const share = { vcpus: 2, memory_mib: 4096, disk_mib: 40 * 1024 };
    const policy = { mostPerHost: 2, mostInTotal: 3, staleAfterSeconds: 120 };
    type Scene = { org: string; host: string; id: string };

    async function scene(): Promise<Scene> {
      const other = await lab.newOrg();
      const one = await lab.newHost(other, { capacity: capacityOf(share) });
      await lab.superuser`
        INSERT INTO vm_labels (org_id, label, image_id, profile, max_leases) VALUES (${other}, 'linux', ${IMAGE.id}, 'small', 1)`;
      return { org: other, host: one, id: await lab.newLease(other, { label: "linux" }) };
    }
    const placeOn = ({ host: hostId, id: leaseId }: Scene) =>
      lab.system.begin((tx) =>
        placeLease(tx, { leaseId, hostId, vmId: uuidv7(), taskId: uuidv7(), placement: {} }, policy),
      );

    it("VM-02 gives a lease to a host that has exactly enough for it", async () => {
      const found = await scene();
      expect(await placeOn(found)).toBe(true);
      expect(await placeOn(found)).toBe(false);
      expect(await lab.miscounted()).toEqual([]);
    });

    const report = (host: string, allocatable: typeof share) =>
      lab.report(host, { capacity: capacityOf(allocatable) });
    const reserve = (host: string, column: string) =>
      lab.superuser`UPDATE vm_hosts SET ${lab.superuser(column)} = 1 WHERE node_id = ${host}`;
    const other = async ({ org: orgId }: Scene, label?: string) => {
      const host = await lab.newHost(orgId);
      const id = await lab.newLease(orgId, label === undefined ? {} : { label });
      expect(await placeOn({ org: orgId, host, id })).toBe(true);
    };
    it.each<[string, (scene: Scene) => Promise<unknown>]>([
      ["too few processors", ({ host }) => report(host, { ...share, vcpus: 1 })],
      ["too little memory", ({ host }) => report(host, { ...share, memory_mib: 4095 })],
      ["too little disk", ({ host }) => report(host, { ...share, disk_mib: 40 * 1024 - 1 })],
      ["processors that are reserved", ({ host }) => reserve(host, "reserved_vcpus")],
      ["memory that is reserved", ({ host }) => reserve(host, "reserved_memory_mib")],
      ["disk that is reserved", ({ host }) => reserve(host, "reserved_disk_gib")],
      ["its limit of VMs", ({ host }) => lab.superuser`UPDATE vm_hosts SET leases = 2 WHERE node_id = ${host}`],
      ["a limit of its own", ({ host }) => lab.report(host, { capacity: capacityOf(share, 0) })],
      ["been disabled", ({ host }) => lab.superuser`UPDATE vm_hosts SET enabled = false WHERE node_id = ${host}`],
      ["been drained", ({ host }) => lab.superuser`UPDATE nodes SET status = 'draining' WHERE id = ${host}`],
      [
        "a late heartbeat",
        ({ host }) =>
          lab.superuser`UPDATE node_presence SET heartbeat_at = now() - interval '121 seconds' WHERE node_id = ${host}`,
      ],
      ["a problem", ({ host }) => lab.report(host, { capacity: capacityOf(share), problem: "no QEMU" })],
      ["no accelerator yet", ({ host }) => lab.report(host, { capacity: capacityOf(share), accelerator: null })],
      ["a label with its limit", (found) => other(found, "linux")],
      [
        "an organization with its limit",
        async (found) => {
          for (let n = 0; n < 3; n += 1) await other(found);
        },
      ],
      [
        "a lease whose time to wait is over",
        ({ id }) => lab.superuser`UPDATE vm_leases SET wait_until = now() WHERE id = ${id}`,
      ],
    ])("VM-02 gives nothing to a host that has %s", async (_what, change) => {
      const found = await scene();
      await change(found);
      expect(await placeOn(found)).toBe(false);
      expect((await lab.row(found.id)).status).toBe("requested");
      await lab.superuser`
        UPDATE vm_hosts h SET leases = 0, reserved_vcpus = 0, reserved_memory_mib = 0, reserved_disk_gib = 0
        WHERE h.node_id = ${found.host}`;
    });
  });

  it("VM-02 gives a VM that was booted ahead to one lease, also while the host still reports it", async () => {
    const own = await lab.newOrg();
    const size = { vcpus: 1, memory_mib: 256, disk_mib: 1024 };
    const vm_id = uuidv7();
    const warm = { vm_id, image_id: IMAGE.id, image_sha256: IMAGE.sha256, accelerator: "kvm" as const, ...size };
    const ahead = await lab.newHost(own, { warm_vms: [warm] });
    const first = await lab.newLease(own, { profile: "tiny" });
    await lab.advance();
    const second = await lab.newLease(own, { profile: "tiny" });
    await lab.advance();
    expect(await lab.row(first)).toMatchObject({ vm_id, host_id: ahead, status: "provisioning" });
    const { vm_id: another, host_id } = await lab.row(second);
    expect(host_id).toBe(ahead);
    expect(another).not.toBe(vm_id);
    const offered = await lab.respond(ahead, outcomeOf);
    expect(offered.map(({ params }) => params.vm_id).sort()).toEqual([vm_id, another].sort());
    // A host lists it among its VMs only when a lease has it, so it is none without a lease.
    await lab.report(ahead, { vms: [], warm_vms: [{ ...warm, vm_id: uuidv7() }] });
    await lab.advance();
    expect(await lab.superuser`SELECT FROM vm_strays WHERE node_id = ${ahead}`).toEqual([]);
    for (const id of [first, second])
      await lab.superuser`UPDATE vm_leases SET expires_at = now() WHERE id = ${id}`;
    await lab.advance();
    await lab.respond(ahead, outcomeOf);
    await lab.advance();
    expect((await lab.row(first)).status).toBe("terminated");
  });

  it("VM-02 keeps caps of a label and of the organization", async () => {
    const other = await lab.newOrg();
    await lab.newHost(other);
    await lab.newHost(other);
    await lab.superuser`
      INSERT INTO vm_labels (org_id, label, image_id, profile, max_leases) VALUES (${other}, 'linux', ${IMAGE.id}, 'tiny', 2)`;
    const labelled = [];
    for (let n = 0; n < 4; n += 1) labelled.push(await lab.newLease(other, { profile: "tiny", label: "linux" }));
    for (let n = 0; n < 4; n += 1) await lab.newLease(other, { profile: "tiny" });
    await Promise.all([lab.advance({ policy: { mostInTotal: 5 } }), lab.advance({ policy: { mostInTotal: 5 } })]);
    const rows = await Promise.all(labelled.map((id) => lab.row(id)));
    expect(rows.filter(({ host_id }) => host_id !== null)).toHaveLength(2);
    const [total] = await lab.superuser<
      { n: number }[]
    >`SELECT sum(leases)::int AS n FROM vm_hosts WHERE org_id = ${other}`;
    expect(total?.n).toBe(5);
  });

  const share = { vcpus: 64, memory_mib: 131_072, disk_mib: 2 ** 21 };
  /** By the leases themselves, not by what is counted for their hosts. */
  const overcommitted = (orgId: string, most: typeof share) => lab.superuser`
    SELECT l.host_id, sum(l.vcpus) AS vcpus FROM vm_leases l
    WHERE l.org_id = ${orgId} AND l.host_id IS NOT NULL AND l.finished_at IS NULL GROUP BY l.host_id
    HAVING sum(l.vcpus) > ${most.vcpus} OR sum(l.memory_mib) > ${most.memory_mib} OR sum(l.disk_gib) * 1024 > ${most.disk_mib}`;
  const hostsOf = async (orgId: string, allocatable: typeof share) => {
    const hosts: string[] = [];
    for (let n = 0; n < 20; n += 1) hosts.push(await lab.newHost(orgId, { capacity: capacityOf(allocatable) }));
    return hosts;
  };
  const unplaced = async (orgId: string) =>
    (await lab.superuser`SELECT FROM vm_leases WHERE org_id = ${orgId} AND status = 'requested'`).length;
  const profile = fc.constantFrom<VmProfile>("tiny", "small", "medium", "large");

  it("VM-02 places 1,000 concurrent requests on 20 hosts without overcommitting one, and each gets its turn", async () => {
    const wanted = fc.sample(fc.array(profile, { minLength: 1000, maxLength: 1000 }), 1)[0] ?? [];
    const other = await lab.newOrg();
    const hosts = await hostsOf(other, share);
    let arriving = true;
    const arrived = Promise.all(wanted.map((one) => lab.newLease(other, { profile: one }))).finally(() => {
      arriving = false;
    });
    // Looks all the time, also while a placement is under way.
    let looks = 0;
    let done = false;
    const watching = (async () => {
      for (; !done; looks += 1) {
        expect(await overcommitted(other, share)).toEqual([]);
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    })();
    let rounds = 0;
    while (arriving || (await unplaced(other)) > 0) {
      // Four replicas plan from the same moment, while requests arrive and hosts report.
      const reports = hosts.map((one) => lab.respond(one, () => failedWith("vm_qemu_failed")));
      // The launches fail, which frees their share: the next ones follow.
      await Promise.all([lab.advance(), lab.advance(), lab.advance(), lab.advance(), ...reports]);
      rounds += 1;
      expect(rounds).toBeLessThan(200);
    }
    const ids = await arrived;
    done = true;
    await watching;
    expect(looks).toBeGreaterThan(rounds);
    for (const one of hosts) await lab.respond(one, () => failedWith("vm_qemu_failed"));
    await lab.advance();
    const launched = await lab.superuser<{ n: number }[]>`
      SELECT count(*)::int AS n FROM tasks WHERE node_id = ANY (${hosts}::uuid[]) AND type = 'vm.launch'`;
    expect(launched).toEqual([{ n: ids.length }]);
    expect(await lab.miscounted()).toEqual([]);
  });

  it("VM-02 lets no lease starve: large ones get a host although small ones keep coming and hosts stay full", async () => {
    const small = { vcpus: 16, memory_mib: 32_768, disk_mib: 2 ** 19 };
    const run = async (large: number[]) => {
      const other = await lab.newOrg();
      const hosts = await hostsOf(other, small);
      const fill = await Promise.all(Array.from({ length: 360 }, () => lab.newLease(other, { profile: "tiny" })));
      await lab.advance();
      expect(await unplaced(other)).toBe(fill.length - 320);
      const waiting: string[] = [];
      const placed = async () =>
        (await Promise.all(waiting.map((id) => lab.row(id)))).map((row) => row.host_id !== null);
      for (let round = 0; round < 45; round += 1) {
        if (large.includes(round)) waiting.push(await lab.newLease(other, { profile: "large" }));
        // As many small ones come as end, one on each host: there is never room for a large one by chance.
        await Promise.all(hosts.map(() => lab.newLease(other, { profile: "tiny" })));
        await Promise.all(hosts.map((one) => lab.respond(one, () => failedWith("vm_qemu_failed"), { room: 1 })));
        await Promise.all([lab.advance(), lab.advance()]);
        expect(await overcommitted(other, small)).toEqual([]);
      }
      expect(await placed()).toEqual(large.map(() => true));
    };
    const rounds = fc.uniqueArray(fc.integer({ min: 0, max: 12 }), { minLength: 2, maxLength: 2 });
    await fc.assert(fc.asyncProperty(rounds, run), { numRuns: 1 });
  });
});

describe("upkeep", () => {
  it("VM-04 removes leases that ended long ago, with their timelines", async () => {
    const now = new Date(Date.now() + 40 * 86_400_000);
    const live = (await lab.superuser`SELECT FROM vm_leases WHERE finished_at IS NULL`).length;
    expect(await removeOldLeases(lab.system, { days: 30, now })).toBeGreaterThan(0);
    expect(await lab.superuser`SELECT FROM vm_leases`).toHaveLength(live);
  });
});
