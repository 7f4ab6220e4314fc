import { describe, expect, it } from "vitest";
import { docker } from "../docker.ts";
import { podman } from "../podman.ts";
import { runArguments } from "./arguments.ts";
import { explain } from "./cli.ts";
import { narrowProfile } from "./seccomp.ts";
import { verifyReady } from "./verify.ts";

const none = "0000000000000000";
const good = {
  ...{ Uid: "1900000001", CapPrm: none, CapBnd: none, NoNewPrivs: "1", Seccomp: "2" },
  ...{ memory: "1048576", pids: "16", cpu: "50000", work: "an-id", shell: "sh" },
};
const limits = { memoryBytes: 1_048_576, pids: 16, cpus: 0.5, diskBytes: 1 };
const expected = { shell: "sh", image: "an-image", work: "an-id", limits };
const able = { CgroupVersion: "2", MemoryLimit: true, PidsLimit: true, CpuCfsQuota: true };
const facts = docker.facts(able);
const lineOf = (fields: Record<string, string>) =>
  `holdfast:ready ${Object.entries(fields)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ")}`;

describe("a container that is ready", () => {
  it("SBX-01 gets the script if everything holds", () => {
    expect(verifyReady(lineOf(good), expected, facts)).toBeUndefined();
  });

  it.for<[Record<string, string>, RegExp]>([
    [{ Uid: "0" }, /root/],
    [{ CapBnd: "00000000a80425fb" }, /capabilities/],
    [{ CapPrm: "0000000000000400" }, /capabilities/],
    [{ NoNewPrivs: "0" }, /gain privileges/],
    [{ Seccomp: "0" }, /seccomp=unconfined/],
    [{ work: "another" }, /same host/],
    [{ shell: "bash" }, /an-image has no sh/],
    [{ memory: "9223372036854771712" }, /limits: memory/],
    [{ memory: "max", pids: "max", cpu: "-1" }, /limits: memory, pids, cpu/],
  ])("SBX-01 gets no script if one thing does not: %j", ([change, message]) => {
    expect(verifyReady(lineOf({ ...good, ...change }), expected, facts)).toMatch(message);
  });

  it("SBX-02 needs no limit that the engine is known not to set", () => {
    const unable = docker.facts({ ...able, CgroupDriver: "none", SecurityOptions: ["name=rootless"] });
    expect(unable.limits.memory).toMatchObject({ enforced: false, remedy: expect.stringMatching(/cgroup v2/) });
    const line = lineOf({ ...good, memory: "max", pids: "max", cpu: "max" });
    expect(verifyReady(line, expected, unable)).toBeUndefined();
  });
});

describe("the arguments of a run", () => {
  it("SBX-01 leave out the network unless it is ordered", () => {
    const order = { id: "an-id", shell: "sh" as const, image: "an-image", limits, secret: undefined };
    const place = { name: "n", owner: "o", work: "/a,b", user: { uid: 5, gid: 6 }, volumes: ["/data"] };
    const of = (network: boolean) => runArguments(docker, facts, { ...order, network }, place).join(" ");
    expect(of(false)).toContain("--network none");
    expect(of(true)).not.toContain("--network");
    expect(of(true)).toContain('--mount type=bind,"src=/a,b",dst=/work');
    expect(of(true)).toContain("--tmpfs /data:ro,size=4k");
  });
});

describe("what an engine says about itself", () => {
  it("SBX-02 shows that podman without root limits nothing with the first version of cgroups", () => {
    const controllers = ["cpu", "memory", "pids"];
    const of = (cgroupVersion: string, rootless: boolean, cgroupControllers = controllers) =>
      podman.facts({ host: { cgroupVersion, cgroupControllers, security: { rootless } } }).limits;
    expect(of("v1", false).memory.enforced).toBe(true);
    expect(of("v1", true).memory).toMatchObject({ enforced: false, remedy: expect.stringMatching(/as root/) });
    expect(of("v2", true).pids.enforced).toBe(true);
    expect(of("v2", true, ["memory"]).cpu.enforced).toBe(false);
  });

  it.for([
    [docker, "Got permission denied while trying to connect to the Docker daemon socket", /may not use docker/],
    [
      docker,
      "Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?",
      /does not respond/,
    ],
    [docker, "docker: Error response from daemon: No such image: x:latest.", /does not have the image x/],
    [docker, 'exec: "sh": executable file not found in $PATH: unknown.', /has no sh/],
    [podman, "Error: x: image not known", /does not have the image x/],
    [podman, "Error: lookup catatonit: container-init binary not found on the host", /init/],
    [podman, "ENOENT", /podman is not installed/],
    [podman, "something new", /podman failed: something new/],
  ] as const)("SBX-04 is explained: %#", ([engine, said, what]) => {
    const problem = explain(engine, said, "x");
    expect(problem.what).toMatch(what);
    expect(problem.remedy).toMatch(/\w{3}/);
  });
});

describe("the filter of podman", () => {
  it("SBX-01 loses calls that make namespaces and mounts, and keeps the rest", () => {
    const own = {
      defaultAction: "SCMP_ACT_ERRNO",
      syscalls: [
        { names: ["read", "clone", "clone3", "unshare", "mount"], action: "SCMP_ACT_ALLOW" },
        { names: ["setns"], action: "SCMP_ACT_ALLOW", includes: { caps: ["CAP_SYS_ADMIN"] } },
      ],
    };
    const { syscalls, defaultAction } = JSON.parse(narrowProfile(JSON.stringify(own))) as typeof own;
    expect(defaultAction).toBe("SCMP_ACT_ERRNO");
    const allowed = syscalls.filter(({ action }) => action === "SCMP_ACT_ALLOW");
    expect(allowed).toEqual([
      { names: ["read"], action: "SCMP_ACT_ALLOW" },
      {
        names: ["clone"],
        action: "SCMP_ACT_ALLOW",
        args: [{ index: 0, value: 0x7e02_0000, valueTwo: 0, op: "SCMP_CMP_MASKED_EQ" }],
      },
    ]);
  });
});
