// The files with which a VM host is set up, under the names of its runbook. rc.d scripts run under sh with stand-ins for rc.subr and daemon(8)
// that behave as documented; nothing here has run on DragonFlyBSD.

import { execFileSync, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, vi } from "vitest";
import { scratchDirectory } from "../testkit/agent/scratch.ts";
import { atEnd } from "../testkit/lifetime/at-end.ts";
import { rcSystem } from "../testkit/processes/rc-system.ts";
import { lacks, lacksVms } from "./facilities.mjs";

const deploy = fileURLToPath(new URL("../deploy/", import.meta.url));
const read = (path: string) => readFileSync(join(deploy, path), "utf8");
const A_WHILE = 120_000;
const run = (script: string, args: string[], env: Record<string, string> = {}) => {
  const { status, stdout, stderr } = spawnSync("sh", [join(deploy, script), ...args], {
    ...{ encoding: "utf8", timeout: A_WHILE, env: { PATH: process.env["PATH"] ?? "", ...env } },
  });
  return { status, stdout, stderr };
};

describe("the NoCloud fix", () => {
  const file = "etc/cloud/cloud.cfg.d/99-datasource-nocloud.cfg";

  it("VM-07 pins the datasource, and changes nothing the second time", () => {
    const root = scratchDirectory();
    mkdirSync(join(root, "etc/cloud"), { recursive: true });
    expect(run("apply-cloud-init-nocloud-fix.sh", ["--root", root])).toMatchObject({ status: 0, stderr: "" });
    expect(readFileSync(join(root, file), "utf8")).toBe("datasource_list: [ NoCloud, None ]\n");
    const { ino } = statSync(join(root, file));
    expect(run("apply-cloud-init-nocloud-fix.sh", ["--root", root]).stdout).toContain("in place already");
    expect(statSync(join(root, file)).ino).toBe(ino);
    writeFileSync(join(root, file), "datasource_list: [ Azure ]\n");
    run("apply-cloud-init-nocloud-fix.sh", ["--root", root]);
    expect(readFileSync(join(root, file), "utf8")).toBe("datasource_list: [ NoCloud, None ]\n");
  });

  it("VM-07 says what to do where there is no cloud-init, and takes nothing else", () => {
    const root = scratchDirectory();
    expect(run("apply-cloud-init-nocloud-fix.sh", ["--root", root])).toMatchObject({
      status: 1,
      stderr: expect.stringContaining("Install cloud-init first"),
    });
    expect(run("apply-cloud-init-nocloud-fix.sh", ["--rot", root]).status).toBe(2);
  });
});

describe.skipIf(lacksVms())("booting a base image", () => {
  const image = () => {
    const path = join(scratchDirectory(), "default.qcow2");
    execFileSync("qemu-img", ["create", "-q", "-f", "qcow2", path, "1M"]);
    return path;
  };

  it(
    "VM-07 takes the flags of the runbook, and boots nothing with --dry-run",
    () => {
      const path = image();
      const { mtimeMs } = statSync(path);
      const args = [
        "--image",
        path,
        "--ssh-forward",
        "2222",
        "--accel",
        "tcg",
        "--network",
        "user",
        "--headless",
        "--dry-run",
      ];
      const { status, stdout } = run("boot-base-image.sh", args);
      expect([status, stdout]).toEqual([0, expect.stringContaining("hostfwd=tcp:127.0.0.1:2222-:22")]);
      expect(stdout).toContain("-accel tcg");
      expect(statSync(path).mtimeMs).toBe(mtimeMs);
    },
    A_WHILE,
  );

  it.for([
    [["--network", "bridge"], "--network-if"],
    [["--network", "tap", "--network-if", "tap0", "--ssh-forward", "2222"], "--network user only"],
    [["--accel", "xen"], "Allowed choices are auto, kvm, nvmm, tcg"],
  ] as const)("VM-07 refuses %j", ([args, why]) => {
    const { status, stderr } = run("boot-base-image.sh", ["--image", "/no/such.qcow2", ...args, "--dry-run"]);
    expect([status, stderr]).toEqual([2, expect.stringContaining(why)]);
  });
});

describe("the systemd unit of the runbook", () => {
  const ours = read("systemd/holdfast-agent.service");
  const unit = read("systemd/jenkins-qemu-node-agent.service");
  const lines = (text: string) => text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));

  it("AGENT-09 VM-08 is the agent's unit, which may also make taps, and never runs beside it", () => {
    const [a, b] = [lines(ours), lines(unit)];
    expect(b.filter((line) => !a.includes(line))).toEqual([
      "Description=Holdfast agent (VM host)",
      "Conflicts=holdfast-agent.service",
      `${a.find((line) => line.startsWith("CapabilityBoundingSet="))} CAP_NET_ADMIN`,
    ]);
    expect(a.filter((line) => !b.includes(line)).map((line) => line.split("=")[0])).toEqual([
      "Description",
      "CapabilityBoundingSet",
    ]);
    expect(b).toContain("EnvironmentFile=-/etc/jenkins-qemu-node-agent/env");
    expect(b).toContain("WatchdogSec=60");
  });

  it.skipIf(lacks("nspawn"))("AGENT-09 VM-08 is valid for systemd", () => {
    const root = scratchDirectory();
    const path = join(root, "jenkins-qemu-node-agent.service");
    // The programs are installed later.
    writeFileSync(path, unit.replaceAll(/^(ExecStart|ExecStopPost)=(-?).*$/gm, "$1=$2/bin/true"));
    const { status, stderr } = spawnSync(
      "systemd-analyze",
      ["verify", "--man=no", "--recursive-errors=no", path],
      {
        encoding: "utf8",
      },
    );
    expect([status, stderr.split("\n").filter((line) => line.includes("jenkins-qemu"))]).toEqual([0, []]);
  });
});

describe("the installer under its documented name", () => {
  const on = (node: string | undefined, pkg = "") => {
    const root = scratchDirectory();
    const bin = join(root, "bin");
    mkdirSync(bin);
    const stub = (name: string, body: string) =>
      writeFileSync(join(bin, name), `#!/bin/sh\n${body}\n`, { mode: 0o755 });
    stub("uname", "echo DragonFly");
    stub("id", "echo 0");
    stub("pw", `echo "$*" >>${root}/pw`);
    stub("pkg", pkg);
    if (node !== undefined) stub("node", `echo ${node}`);
    writeFileSync(join(root, "agent.mjs"), "// the agent");
    writeFileSync(join(root, "part-1234.mjs"), "// loaded when it is needed");
    const env = {
      PATH: `${bin}:${process.env["PATH"]}`,
      HOLDFAST_NODE: join(bin, "node"),
      HOLDFAST_INSTALL_ROOT: root,
    };
    return { root, ...run("install-node-agent.sh", ["--file", join(root, "agent.mjs")], env) };
  };

  it.for([
    ["no Node.js", undefined, "echo 24.4.1", "pkg install node24   (the repository has 24.4.1)"],
    ["an older Node.js", "v20.11.0", "echo 24.4.1", "is v20.11.0"],
    ["no package of it", "v18.0.0", "exit 1", "build it from DPorts: lang/node24"],
  ] as const)("VM-08 VM-09 says on DragonFlyBSD what to install for %s", ([, node, pkg, fix]) => {
    const { status, stderr } = on(node, pkg);
    expect([status, stderr]).toEqual([1, expect.stringContaining(fix)]);
  });

  it("AGENT-09 VM-08 installs files, user and settings on DragonFlyBSD, and keeps settings the second time", () => {
    const { root, status, stdout, stderr } = on("v24.4.1", "exit 1");
    expect([status, stderr]).toEqual([0, ""]);
    expect(stdout).toContain("service jenkins_qemu_node_agent start");
    for (const file of [
      "usr/local/libexec/holdfast-agent/agent.mjs",
      "usr/local/libexec/holdfast-agent/part-1234.mjs",
      "usr/local/etc/rc.d/jenkins_qemu_node_agent",
    ])
      expect(existsSync(join(root, file)), file).toBe(true);
    const env = join(root, "etc/jenkins-qemu-node-agent/env");
    expect(statSync(env).mode & 0o777).toBe(0o600);
    const settings = readFileSync(env, "utf8");
    for (const name of ["HOST_ID", "BOOTSTRAP_TOKEN", "CONTROL_PLANE_URL", "ADVERTISE_ADDR", "NETWORK_INTERFACE"])
      expect(settings).toContain(`NODE_AGENT_${name}=`);
    expect(settings).toContain("NODE_AGENT_NETWORK_BACKEND=user");
  });
});

describe.skipIf(lacks("root"))("the rc.d service", () => {
  const open = (agent: string, env = "") => {
    const root = scratchDirectory();
    const name = "jenkins_qemu_node_agent";
    const system = rcSystem(root, join(deploy, "rc.d", name), {
      ...{ [`${name}_enable`]: "YES", [`${name}_user`]: "nobody", [`${name}_node`]: "/bin/sh" },
      ...{ [`${name}_dir`]: join(root, "libexec"), [`${name}_env`]: join(root, "etc/env") },
      [`${name}_state`]: join(root, "var/db/agent"),
    });
    system.write("libexec/agent.mjs", agent);
    system.write("libexec/agent-watchdog.sh", read("agent-watchdog.sh"), 0o755);
    system.write("etc/env", env, 0o600);
    atEnd(() => void system.service("stop"));
    const pidfile = join(root, "var/run", name, `${name}.pid`);
    const pid = () => readFileSync(pidfile, "utf8").trim();
    return { ...system, pidfile, pid };
  };
  const agentOf = (root: string) =>
    `id -un >>${root}/user; echo $$ >>${root}/pids; env >${root}/env; exec sleep 1000`;
  const written = (path: string) => (existsSync(path) ? readFileSync(path, "utf8").trim().split("\n") : []);
  const opened = () => {
    const root = scratchDirectory();
    execFileSync("chmod", ["777", root]);
    const lines = ["# settings", "HOLDFAST_AGENT_PORT=1", "NODE_AGENT_HOST_ID=vm-1", "BAD-NAME=x"];
    const system = open(agentOf(root), [...lines, `NODE_AGENT_X=$(touch ${root}/never)`, ""].join("\n"));
    return { ...system, root };
  };

  it(
    "VM-08 VM-09 drops privileges, reads its settings literally, and writes its pid file where the user may",
    async () => {
      const service = opened();
      const started = service.service("start");
      expect([started.status, started.output]).toEqual([
        0,
        expect.stringContaining("this is not a setting: BAD-NAME"),
      ]);
      expect(started.output).not.toContain("Permission denied");
      await vi.waitUntil(() => written(join(service.root, "env")).length > 0, { timeout: A_WHILE });
      expect(written(join(service.root, "user"))).toEqual(["nobody"]);
      const env = written(join(service.root, "env"));
      expect(env).toContain("NODE_AGENT_HOST_ID=vm-1");
      expect(env).toContain(`NODE_AGENT_X=$(touch ${service.root}/never)`);
      expect(existsSync(join(service.root, "never"))).toBe(false);
      expect(statSync(join(service.pidfile, "..")).uid).toBe(Number(execFileSync("id", ["-u", "nobody"])));
      expect(service.service("status")).toEqual({
        status: 0,
        output: expect.stringContaining(`pid ${service.pid()}`),
      });
      expect(service.service("start").output).toContain(`already running? (pid=${service.pid()})`);
    },
    A_WHILE,
  );

  it(
    "VM-08 restarts an agent that ends, and stops it with its wrapper",
    async () => {
      const service = opened();
      service.service("start");
      const pids = () => written(join(service.root, "pids"));
      await vi.waitUntil(() => pids().length === 1, { timeout: A_WHILE });
      const wrapper = service.pid();
      process.kill(Number(pids()[0]), "SIGKILL");
      await vi.waitUntil(() => pids().length === 2, { timeout: A_WHILE });
      expect(service.pid(), "the wrapper is the same").toBe(wrapper);
      expect(service.service("stop").status).toBe(0);
      await vi.waitUntil(() => !existsSync(`/proc/${pids()[1]}`), { timeout: A_WHILE });
      expect(service.service("status")).toEqual({
        status: 1,
        output: "jenkins_qemu_node_agent is not running.\n",
      });
    },
    A_WHILE,
  );

  it.for([
    ["a process that is gone", "999999999"],
    ["somebody else's process", String(process.pid)],
    ["nothing", ""],
  ] as const)(
    "VM-08 VM-09 removes a pid file that names %s, and starts",
    { timeout: A_WHILE },
    async ([, stale]) => {
      const service = opened();
      mkdirSync(join(service.pidfile, ".."), { recursive: true });
      writeFileSync(service.pidfile, stale);
      expect(service.service("status")).toMatchObject({ status: 1, output: expect.stringContaining("is stale") });
      expect(service.service("start")).toMatchObject({ status: 0 });
      await vi.waitUntil(() => written(join(service.root, "pids")).length === 1, { timeout: A_WHILE });
      expect(service.service("status").status).toBe(0);
    },
  );
});

describe("the watchdog", () => {
  const start = async (healthy: () => boolean) => {
    let asked = 0;
    const server = createServer((_request, response) => {
      asked += 1;
      response.writeHead(healthy() ? 200 : 503).end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    atEnd(
      () =>
        new Promise<void>((resolve) => {
          server.close(() => resolve());
          server.closeAllConnections();
        }),
    );
    const { port } = server.address() as AddressInfo;
    const env = { ...process.env, HOLDFAST_AGENT_PORT: String(port), HOLDFAST_WATCHDOG_SECONDS: "0.1" };
    const child = spawn("sh", [join(deploy, "agent-watchdog.sh"), "sleep", "1000"], { env, stdio: "ignore" });
    atEnd(() => void child.kill("SIGKILL"));
    const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
    return { child, ended, asked: () => asked };
  };

  it(
    "AGENT-09 VM-08 ends an agent that was healthy and hangs, and leaves a healthy one alone",
    async () => {
      let hangs = false;
      const { ended, asked, child } = await start(() => !hangs);
      await vi.waitUntil(() => asked() > 5, { timeout: A_WHILE });
      expect(child.exitCode).toBeNull();
      hangs = true;
      expect(await ended).toBe(137);
    },
    A_WHILE,
  );

  it(
    "VM-08 passes a stop on, and ends without an error",
    async () => {
      const { ended, asked, child } = await start(() => true);
      await vi.waitUntil(() => asked() > 0, { timeout: A_WHILE });
      child.kill("SIGTERM");
      expect(await ended).toBe(0);
    },
    A_WHILE,
  );
});
