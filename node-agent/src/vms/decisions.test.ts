// The pure decisions of a VM host.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { allocatable, freeOf, whyNotFitting } from "./capacity.ts";
import { nextDeadline } from "./deadlines.ts";
import { answerLine, digestOf } from "./handshake.ts";
import { networkProblem, probeAccelerators } from "./host-setup.ts";
import type { GuestRecord } from "./record.generated.ts";

describe("the next deadline of a VM", () => {
  const limits = { began_at: 100, ttl_seconds: 1000, connect_within_seconds: 240, disconnect_grace_seconds: 60 };
  const never = { connected_at: null, disconnected_at: null };
  const connected = { connected_at: "2026-01-01T00:00:00.000Z", disconnected_at: null };

  it.for([
    ["the connect deadline, while the guest has not connected", limits, never, "connect_deadline", 340],
    ["the TTL, once it has", limits, connected, "ttl", 1100],
    ["the end of the grace period", limits, { ...connected, disconnected_at: 500 }, "disconnected", 560],
    [
      "the TTL, if it comes before the grace period ends",
      limits,
      { ...connected, disconnected_at: 1090 },
      "ttl",
      1100,
    ],
    [
      "the TTL, without a grace period",
      { ...limits, disconnect_grace_seconds: null },
      { ...connected, disconnected_at: 1 },
      "ttl",
      1100,
    ],
    ["the TTL, if no guest is waited for", { ...limits, connect_within_seconds: null }, never, "ttl", 1100],
    ["the TTL, if it is shorter than the connect deadline", { ...limits, ttl_seconds: 5 }, never, "ttl", 105],
  ] as const)("VM-04 is %s", ([, given, guest, end, at]) => {
    expect(nextDeadline(given, guest)).toEqual({ end, at });
  });
});

describe("a guest's handshake", () => {
  const record: GuestRecord = {
    seed_sha256: digestOf("seed"),
    session_sha256: null,
    connected_at: null,
    disconnected_at: null,
  };
  const state = { record, welcomed: false, newSecret: "session", now: "2026-01-01T00:00:00.000Z" };

  it("VM-04 accepts the secret of the seed once, and the session's afterwards", () => {
    const welcome = answerLine("hello seed", state);
    expect(welcome).toMatchObject({ reply: "welcome session", accepted: true });
    // A reply may be lost: until the guest is ready, its seed counts.
    expect(welcome.record).toMatchObject({ seed_sha256: digestOf("seed"), connected_at: null });
    const ready = answerLine("ready", { ...state, record: welcome.record, welcomed: true });
    expect(ready.record).toEqual({
      ...record,
      seed_sha256: null,
      session_sha256: digestOf("session"),
      connected_at: state.now,
    });
    const again = { ...state, record: ready.record };
    expect(answerLine("hello seed", again)).toMatchObject({
      reply: "denied",
      accepted: false,
      record: ready.record,
    });
    expect(answerLine("hello session", again)).toMatchObject({ reply: "welcome session", accepted: true });
  });

  it("VM-04 knows no guest that presents anything else, whatever it says", () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.oneof(
            fc.string(),
            fc.string().map((text) => `hello ${text}`),
            fc.constant("ready"),
          ),
        ),
        (lines) => {
          let known = { ...state };
          for (const line of lines.filter((one) => one.trim() !== "hello seed")) {
            const step = answerLine(line, known);
            known = { ...known, record: step.record, welcomed: step.accepted };
          }
          expect(known.record).toEqual(record);
        },
      ),
    );
  });

  it("VM-04 is connected again after a gap, since the first time", () => {
    const gone = {
      ...record,
      seed_sha256: null,
      session_sha256: digestOf("s"),
      connected_at: "2025-01-01T00:00:00.000Z",
      disconnected_at: 5,
    };
    const { record: after } = answerLine("ready", { ...state, record: gone, welcomed: true });
    expect(after).toEqual({ ...gone, disconnected_at: null });
  });
});

describe("the capacity of a VM host", () => {
  const physical = { vcpus: 8, memory_mib: 1000, disk_mib: 1000 };
  it("VM-02 is a share of the machine, or what its owner allows", () => {
    expect(allocatable(physical, {})).toEqual({ vcpus: 8, memory_mib: 800, disk_mib: 900 });
    expect(allocatable(physical, { vcpus: 32, memoryMib: 5000, diskMib: 100 })).toEqual({
      vcpus: 32,
      memory_mib: 1000,
      disk_mib: 100,
    });
  });
  it("VM-02 is never negative, and names what is missing", () => {
    const vm = { vcpus: 2, memory_mib: 300, disk_mib: 10 };
    const free = freeOf({ vcpus: 3, memory_mib: 1000, disk_mib: 100 }, [vm, vm]);
    expect(free).toEqual({ vcpus: 0, memory_mib: 400, disk_mib: 80 });
    expect(whyNotFitting(free, { vcpus: 1, memory_mib: 1, disk_mib: 1 })).toBe("It needs 1 vCPUs; 0 are free.");
    expect(whyNotFitting(free, { vcpus: 0, memory_mib: 400, disk_mib: 81 })).toBe(
      "It needs 81 MiB of disk; 80 are free.",
    );
    expect(whyNotFitting(free, { vcpus: 0, memory_mib: 400, disk_mib: 80 })).toBeUndefined();
  });
});

describe("the accelerator of a VM host", () => {
  const probing = (...usable: string[]) => {
    const probed: string[] = [];
    const probe = async (name: string) => {
      probed.push(name);
      return { usable: usable.includes(name), detail: name };
    };
    return { probed, driver: { probe } };
  };
  it.for([
    ["auto", "linux", ["kvm", "tcg"], "kvm", ["kvm"]],
    ["auto", "linux", ["tcg"], "tcg", ["kvm", "tcg"]],
    ["auto", "dragonfly", ["nvmm", "tcg"], "nvmm", ["nvmm"]],
    ["kvm", "linux", ["tcg"], "tcg", ["kvm", "tcg"]],
    ["tcg", "linux", ["kvm", "tcg"], "tcg", ["tcg"]],
    ["auto", "linux", [], null, ["kvm", "tcg"]],
  ] as const)(
    "VM-03 AGENT-08 of %s on %s where %j boot is %s",
    async ([wanted, family, usable, selected, asked]) => {
      const { driver, probed } = probing(...usable);
      expect(await probeAccelerators(driver, wanted, family)).toMatchObject({ selected });
      expect(probed).toEqual(asked);
    },
  );
});

describe("the network of a VM host", () => {
  const on =
    (...paths: string[]) =>
    (path: string) =>
      paths.includes(path);
  it.for([
    [{ backend: "user", interface: undefined, uplink: false }, on(), undefined],
    [{ backend: "user", interface: undefined, uplink: true }, on("/usr/bin/slirp4netns"), undefined],
    [{ backend: "user", interface: undefined, uplink: true }, on(), /apt-get install slirp4netns/],
    [{ backend: "bridge", interface: undefined }, on(), /needs NODE_AGENT_NETWORK_INTERFACE/],
    [{ backend: "bridge", interface: "br0" }, on(), /br0 does not exist/],
    [{ backend: "bridge", interface: "br0" }, on("/sys/class/net/br0"), /not a bridge/],
    [{ backend: "bridge", interface: "br0" }, on("/sys/class/net/br0", "/sys/class/net/br0/bridge"), undefined],
    [{ backend: "tap", interface: "t0" }, on("/sys/class/net/t0"), /not a tap/],
    [{ backend: "tap", interface: "t0" }, on("/sys/class/net/t0", "/sys/class/net/t0/tun_flags"), undefined],
  ] as const)("VM-03 is checked: %j", ([network, exists, expected]) => {
    const problem = networkProblem({ uplink: true, ...network }, exists);
    if (expected === undefined) expect(problem).toBeUndefined();
    else expect(problem).toMatch(expected);
  });
});
