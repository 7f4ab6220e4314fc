import { enforcedLimits } from "@holdfast/contracts/execution/limits";
import { describe, expect, it } from "vitest";
import type { LimitCheck, SandboxCheck } from "../drivers/sandbox/driver.ts";
import { hasNetwork, passedOn, refusalOf, type SandboxPolicy } from "./policy.ts";

const limitsWith = (limit: LimitCheck) =>
  Object.fromEntries(enforcedLimits.map((one) => [one, limit])) as SandboxCheck["limits"];
const all = limitsWith({ enforced: true, by: "cgroups" });
const none = limitsWith({ enforced: false, what: "no cgroups", remedy: "mount them" });

const policy: SandboxPolicy = {
  limits: { memoryBytes: 1, cpus: 1, pids: 1, diskBytes: 1 },
  ...{ timeoutMs: 30_000, outputCharacters: 65_536, image: "an image", networkDefault: "none" },
  ...{ allowNetwork: false, allowUnenforced: [], passthrough: [] },
};
const sandbox = {
  check: { backend: "bubblewrap", limits: all },
  provides: { isolation: true, images: false },
  policy,
} as const;
const host = {
  check: { backend: "host", limits: none },
  provides: { isolation: false, images: false },
  policy: { ...policy, allowUnenforced: enforcedLimits },
} as const;

describe("what a shell step requires", () => {
  it("EXEC-05 is compared with what the host provides", () => {
    expect(refusalOf({}, sandbox)).toBeUndefined();
    expect(refusalOf({ backend: "bubblewrap", network: "none", timeoutMs: 1000 }, sandbox)).toBeUndefined();
    expect(refusalOf({ backend: "host", network: "enabled" }, host)).toBeUndefined();
  });

  it.for([
    [{ backend: "docker" }, sandbox, /requires the backend "docker", and this agent has bubblewrap/],
    [
      { docker: { image: "debian" } },
      sandbox,
      /requires the image "debian", and the backend bubblewrap has no images/,
    ],
    [{ network: "none" }, host, /without network, which the backend host cannot provide/],
    [{ network: "enabled" }, sandbox, /HOLDFAST_EXECUTION_ALLOW_NETWORK=yes/],
  ] as const)("EXEC-05 is refused rather than left out: %j", ([wanted, offered, why]) => {
    expect(refusalOf(wanted, offered)).toMatch(why);
  });

  it("SBX-04 may be an image where the backend has images", () => {
    const docker = {
      check: { backend: "docker", limits: all },
      provides: { isolation: true, images: true },
      policy,
    } as const;
    expect(refusalOf({ docker: { image: "debian" } }, docker)).toBeUndefined();
  });

  it("SBX-01 gets the network only if the step asks for it and the owner of the host allows it", () => {
    const allowing = { ...sandbox, policy: { ...policy, allowNetwork: true } };
    expect(refusalOf({ network: "enabled" }, allowing)).toBeUndefined();
    expect([hasNetwork({}, policy), hasNetwork({ network: "enabled" }, policy)]).toEqual([false, true]);
    const byDefault = { ...policy, networkDefault: "enabled" as const };
    expect([hasNetwork({}, byDefault), hasNetwork({ network: "none" }, byDefault)]).toEqual([true, false]);
    expect(refusalOf({}, { ...sandbox, policy: byDefault })).toMatch(/HOLDFAST_EXECUTION_ALLOW_NETWORK=yes/);
  });
});

describe("limits that nothing enforces", () => {
  const without = (allowUnenforced: SandboxPolicy["allowUnenforced"]) =>
    refusalOf(
      {},
      {
        ...sandbox,
        check: { backend: "bubblewrap", limits: { ...none, disk: all.disk } },
        policy: { ...policy, allowUnenforced },
      },
    );

  it("SBX-02 refuse the run, with what to change", () => {
    const refusal = without([]);
    expect(refusal).toMatch(/bubblewrap cannot enforce .*memory \(no cgroups; mount them\)/);
    expect(refusal).toMatch(/HOLDFAST_EXECUTION_ALLOW_UNENFORCED=memory,pids,cpu and restart/);
  });

  it("SBX-02 are accepted one by one by the owner of the host", () => {
    expect(without(["memory"])).toMatch(/HOLDFAST_EXECUTION_ALLOW_UNENFORCED=pids,cpu /);
    expect(without(["memory", "cpu", "pids"])).toBeUndefined();
  });
});

describe("variables of the agent", () => {
  it("SBX-03 are passed on if step and owner both name them; others are named with the reason", () => {
    const environment = { KEY: "k", OTHER: "o", EMPTY: "" };
    expect(passedOn(["KEY", "OTHER", "EMPTY", "UNSET", "KEY"], ["KEY", "EMPTY", "UNSET"], environment)).toEqual({
      env: { KEY: "k" },
      missing: [
        "OTHER: not in HOLDFAST_EXECUTION_ENV_PASSTHROUGH of the agent's host",
        "EMPTY: not set on the agent's host",
        "UNSET: not set on the agent's host",
      ],
    });
    expect(passedOn(undefined, ["KEY"], environment)).toEqual({ env: {}, missing: [] });
  });

  it("SBX-03 are named as far as a result has room", () => {
    const { missing } = passedOn(
      Array.from({ length: 100 }, (_, n) => `${"X".repeat(250)}${n}`),
      [],
      {},
    );
    expect([missing.length, missing.at(-1)]).toEqual([21, "and 80 more"]);
    expect(missing.join("").length).toBeLessThan(6000);
  });
});
