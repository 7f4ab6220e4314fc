import { sizeOfProfile, vmProfiles } from "@holdfast/contracts/vm/profiles";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { freeOf, type HostView, place, planPlacements, type WantedVm, whyNot } from "./place.ts";

const image = { id: "debian-13", sha256: "ab".repeat(32), problem: null, references: 0 };
const hostOf = (changes: Partial<HostView> = {}): HostView => ({
  ...{ id: "h1", name: "host-1", standing: "active", enabled: true, freshness: "online", arch: "x64" },
  ...{ accelerator: "kvm", accelerators: ["kvm", "tcg"], problem: null, mostVms: 64, images: [image], leases: 0 },
  allocatable: { vcpus: 8, memoryMib: 16_384, diskMib: 200 * 1024 },
  reserved: { vcpus: 0, memoryMib: 0, diskMib: 0 },
  ...changes,
});
const wantedOf = (changes: Partial<WantedVm> = {}): WantedVm => ({
  ...{ id: "l1", label: null, imageId: image.id, imageSha256: image.sha256, arch: null, accelerator: null },
  ...{ vcpus: 2, memoryMib: 4096, diskGib: 40 },
  ...changes,
});
const caps = { mostPerHost: 64, mostInTotal: 1000 };
const nothing = { total: 0, labels: new Map() };
const situation = { ...caps, taken: nothing, held: new Map<string, string>() };

describe("why a host was not chosen", () => {
  const full = { vcpus: 7, memoryMib: 0, diskMib: 0 };
  it.each([
    { reason: "arch_differs", wanted: { arch: "arm64" }, fix: "Use a host of that architecture" },
    {
      reason: "accelerator_missing",
      wanted: { accelerator: "nvmm" },
      fix: "selected_accel not supported by host",
    },
    { reason: "too_large", wanted: { vcpus: 9 }, fix: "Choose a smaller profile" },
    { reason: "node_not_active", host: { standing: "draining" }, fix: "holdfast node reactivate host-1" },
    { reason: "disabled", host: { enabled: false }, fix: "holdfast host enable host-1" },
    { reason: "heartbeat_late", host: { freshness: "stale" }, fix: "holdfast node show host-1" },
    {
      reason: "heartbeat_late",
      host: { freshness: "offline" },
      fix: "heartbeat does not reach the control plane",
    },
    { reason: "host_problem", host: { problem: "no /dev/kvm." }, fix: "no /dev/kvm." },
    { reason: "probe_pending", host: { accelerator: null }, fix: "No action is needed" },
    { reason: "image_missing", host: { images: [] }, fix: "NODE_AGENT_BASE_IMAGE_DIR/debian-13.qcow2 on host-1" },
    {
      reason: "image_unusable",
      host: { images: [{ ...image, problem: "it has a backing file." }] },
      fix: "backing file",
    },
    { reason: "image_pending", host: { images: [{ ...image, sha256: null }] }, fix: "No action is needed" },
    {
      reason: "image_differs",
      host: { images: [{ ...image, sha256: "cd".repeat(32) }] },
      fix: "under another id",
    },
    { reason: "host_cap", host: { leases: 64 }, fix: "at most 64" },
    { reason: "full", host: { reserved: full }, fix: "cpu_free=1, ram_free_mb=16384" },
  ] as const)("VM-09 $reason, with what to do", ({ reason, fix, ...changes }) => {
    const host = hostOf("host" in changes ? (changes.host as Partial<HostView>) : {});
    const wanted = wantedOf("wanted" in changes ? (changes.wanted as Partial<WantedVm>) : {});
    expect(whyNot(host, wanted, situation)).toBe(reason);
    const { notChosen } = place(wanted, [host], situation);
    expect(notChosen).toMatchObject([{ reason, message: expect.stringContaining(fix) }]);
  });

  it("VM-02 names the caps of the label and of the organization", () => {
    const labels = new Map([["linux", { used: 3, most: 3 }]]);
    const labelled = wantedOf({ label: "linux" });
    expect(whyNot(hostOf(), labelled, { ...situation, taken: { total: 0, labels } })).toBe("label_cap");
    expect(whyNot(hostOf(), labelled, { ...situation, taken: { total: 1000, labels } })).toBe("total_cap");
    expect(
      place(labelled, [hostOf()], { ...situation, taken: { total: 0, labels } }).notChosen[0]?.message,
    ).toContain("The label linux has 3 VMs, of at most 3.");
  });
});

describe("the choice", () => {
  it("VM-02 prefers a host that has the image in use, then the one with the most memory left", () => {
    const warm = hostOf({
      id: "warm",
      images: [{ ...image, references: 1 }],
      reserved: { vcpus: 4, memoryMib: 8192, diskMib: 0 },
    });
    const cold = hostOf({ id: "cold" });
    expect(place(wantedOf(), [cold, warm], situation).host?.id).toBe("warm");
    const used = hostOf({ id: "used", reserved: { vcpus: 2, memoryMib: 4096, diskMib: 0 } });
    expect(place(wantedOf(), [used, cold], situation).host?.id).toBe("cold");
  });

  it("VM-02 prefers a host that has booted a VM ahead for the lease, and gives each such VM to one lease", () => {
    const size = { vcpus: 2, memory_mib: 4096, disk_mib: 40 * 1024 };
    const vm = {
      vm_id: "w1",
      image_id: image.id,
      image_sha256: image.sha256,
      accelerator: "kvm" as const,
      ...size,
    };
    const reserved = { vcpus: 4, memoryMib: 8192, diskMib: 0 };
    const ahead = hostOf({ id: "ahead", name: "ahead", warm: [vm], reserved });
    const inUse = hostOf({ id: "in-use", images: [{ ...image, references: 1 }] });
    const leases = [wantedOf({ id: "first" }), wantedOf({ id: "second" })];
    const { placements } = planPlacements(leases, [inUse, ahead], caps, nothing);
    expect(placements.map(({ host, warmVmId }) => [host.id, warmVmId])).toEqual([
      ["ahead", "w1"],
      ["in-use", undefined],
    ]);
    const other = (changes: Partial<typeof vm>) => hostOf({ id: "other", warm: [{ ...vm, ...changes }] });
    for (const host of [
      other({ image_id: "debian-12" }),
      other({ image_sha256: "cd".repeat(32) }),
      other({ vcpus: 1 }),
      other({ memory_mib: 8192 }),
      other({ disk_mib: 1024 }),
    ])
      expect(planPlacements([wantedOf()], [host], caps, nothing).placements[0]?.warmVmId).toBeUndefined();
    const slow = planPlacements([wantedOf({ accelerator: "tcg" })], [ahead], caps, nothing);
    expect(slow.placements[0]?.warmVmId).toBeUndefined();
  });

  it("VM-02 keeps a host free for an older lease that lacks only room, so that smaller ones do not overtake it", () => {
    const busy = hostOf({ reserved: { vcpus: 4, memoryMib: 8192, diskMib: 0 } });
    const large = wantedOf({ id: "large", vcpus: 8, memoryMib: 16_384 });
    const { placements, waiting } = planPlacements([large, wantedOf({ id: "small" })], [busy], caps, nothing);
    expect(placements).toEqual([]);
    expect(waiting.map(({ notChosen }) => notChosen[0]?.reason)).toEqual(["full", "held"]);
    expect(waiting[1]?.notChosen[0]?.message).toContain("the older lease large");
  });

  it("VM-02 keeps one host free for each older lease that lacks only room, not the same one for all", () => {
    const busy = (id: string, memoryMib: number) =>
      hostOf({ id, name: id, reserved: { vcpus: 4, memoryMib, diskMib: 0 } });
    const large = { vcpus: 8, memoryMib: 16_384 };
    const leases = [
      wantedOf({ id: "one", ...large }),
      wantedOf({ id: "two", ...large }),
      wantedOf({ id: "small" }),
    ];
    const { placements, waiting } = planPlacements(leases, [busy("a", 8192), busy("b", 9216)], caps, nothing);
    expect(placements).toEqual([]);
    expect(
      waiting.at(-1)?.notChosen.map(({ host_id, message }) => [host_id, /lease (\w+),/.exec(message)?.[1]]),
    ).toEqual([
      ["a", "one"],
      ["b", "two"],
    ]);
  });

  it("VM-02 keeps no host for a lease that does not fit on it at all, or whose label has its limit", () => {
    const huge = wantedOf({ id: "huge", vcpus: 16 });
    const labels = new Map([["linux", { used: 1, most: 1 }]]);
    const capped = wantedOf({ id: "capped", label: "linux" });
    const plan = planPlacements([huge, capped, wantedOf({ id: "small" })], [hostOf()], caps, { total: 1, labels });
    expect(plan.placements.map(({ wanted }) => wanted.id)).toEqual(["small"]);
  });

  const request = fc.constantFrom(...vmProfiles).map((profile) => {
    const { vcpus, memory_mib: memoryMib, disk_gib: diskGib } = sizeOfProfile[profile];
    return { vcpus, memoryMib, diskGib };
  });
  const room = fc.record({
    vcpus: fc.integer({ min: 0, max: 64 }),
    memoryMib: fc.integer({ min: 0, max: 65_536 }),
    diskMib: fc.integer({ min: 0, max: 2 ** 20 }),
  });

  it("VM-02 never gives a host more than it allows, and leaves nobody waiting who fits where nobody older waits", () => {
    fc.assert(
      fc.property(
        fc.array(request, { maxLength: 60 }),
        fc.array(room, { maxLength: 8 }),
        fc.integer({ min: 1, max: 80 }),
        (requests, rooms, mostInTotal) => {
          const hosts = rooms.map((allocatable, n) => hostOf({ id: `h${n}`, name: `host-${n}`, allocatable }));
          const wanted = requests.map((one, n) => wantedOf({ ...one, id: `l${n}` }));
          const policy = { mostPerHost: 64, mostInTotal };
          const { placements, waiting } = planPlacements(wanted, hosts, policy, nothing);
          expect(placements.length + waiting.length).toBe(wanted.length);
          expect(placements.length).toBeLessThanOrEqual(mostInTotal);
          for (const host of hosts) {
            const here = placements.filter((one) => one.host.id === host.id).map((one) => one.wanted);
            const sum = (of: (one: WantedVm) => number) => here.reduce((all, one) => all + of(one), 0);
            expect(sum((one) => one.vcpus)).toBeLessThanOrEqual(host.allocatable.vcpus);
            expect(sum((one) => one.memoryMib)).toBeLessThanOrEqual(host.allocatable.memoryMib);
            expect(sum((one) => one.diskGib * 1024)).toBeLessThanOrEqual(host.allocatable.diskMib);
          }
          // Every host is named once, with a reason.
          for (const { notChosen } of waiting)
            expect(notChosen.map(({ host_id }) => host_id)).toEqual(hosts.map(({ id }) => id));
          // The oldest one that waits has no host with room for it.
          const first = waiting[0];
          if (first && placements.length < mostInTotal)
            for (const { reason } of first.notChosen) expect(["full", "too_large", "host_cap"]).toContain(reason);
        },
      ),
      { numRuns: 300 },
    );
  });

  it("VM-02 reports what is free as allocatable less reserved", () => {
    expect(freeOf(hostOf({ reserved: { vcpus: 3, memoryMib: 384, diskMib: 1024 } }))).toEqual({
      vcpus: 5,
      memoryMib: 16_000,
      diskMib: 199 * 1024,
    });
  });
});
