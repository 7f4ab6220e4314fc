// The agent on a machine of its own, under a real systemd: installed by the line that "Add a node" prints, hung,
// restarted, upgraded, rebooted, removed. The tests follow each other, as the days of a node do.

import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import type { AnswerOf } from "@holdfast/contracts/endpoint";
import type { Allocation } from "@holdfast/contracts/endpoints/allocations";
import type { explainNode } from "@holdfast/contracts/endpoints/drift";
import type { createEnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import type { listHosts } from "@holdfast/contracts/endpoints/hosts";
import type { getLease } from "@holdfast/contracts/endpoints/leases";
import type { listNodeDiagnostics, Node } from "@holdfast/contracts/endpoints/nodes";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { packArchive } from "../../../scripts/agent-archive/archive.ts";
import { bundleAgent } from "../../../scripts/agent-archive/bundle.ts";
import type { Arch } from "../../../scripts/agent-archive/packages.ts";
import { tarEnd, tarEntries } from "../../../scripts/agent-archive/tar.ts";
import { lacks, lacksVms } from "../../../scripts/facilities.mjs";
import { smallGuest } from "../../../testkit/guests/small-guest.ts";
import { type Installation, openInstallation, until } from "../../../testkit/processes/holdfast.ts";
import { bootGuest, type Guest } from "../support/guest.ts";
import { ask, untilItAnswers } from "../support/shells.ts";
import { openTty, type Tty } from "../support/tty.ts";

const unit = "holdfast-agent.service";
const command = fileURLToPath(new URL("../../bin/holdfast.mjs", import.meta.url));
const cache = fileURLToPath(new URL("../../../node_modules/.cache/holdfast-agent", import.meta.url));
const deploy = new URL("../../../deploy/", import.meta.url);
const name = `reef-${process.pid}`;

describe.skipIf(lacks("root") || lacks("nspawn"))("the agent under systemd", () => {
  let installation: Installation;
  let guest: Guest;
  let untouched: { files: string[]; accounts: string };
  let line: string;
  let token: string;
  let shell: Tty;
  let shellPid: string;

  const json = async <T>(args: string[]): Promise<T> => {
    const { code, stdout, stderr } = await installation.run([...args, "--json"]);
    if (code !== 0) throw new Error(`holdfast ${args.join(" ")} ended with ${code}:\n${stderr}`);
    return JSON.parse(stdout) as T;
  };
  const node = async () =>
    (await json<{ items: Node[] }>(["node", "list"])).items.find((one) => one.name === name);
  const show = async (property: string) =>
    (await guest.ask(`systemctl show -p ${property} --value ${unit}`)).trim();
  const isConnected = async () => (await show("StatusText")).startsWith("connected to");
  const current = async () => (await guest.ask("readlink /opt/holdfast-agent/current")).trim();
  const accounts = () =>
    ["passwd", "group"].map((file) => readFileSync(join(guest.root, "etc", file), "utf8")).join();
  /** Copies an archive of another version into the guest; returns the options that install it. */
  const bringWorking = async (version: string) => {
    const bundle = await bundleAgent({ version });
    const directory = join(guest.root, "mnt");
    const { file, sha256 } = packArchive({ arch: process.arch as Arch, version, bundle, directory, cache });
    return `--file /mnt/${file} --sha256 ${sha256}`;
  };
  const bringBroken = (version: string) => {
    const entry = (path: string, content: string | Buffer) => ({
      ...{ path: `holdfast-agent/${path}`, content: Buffer.from(content), executable: true },
    });
    const program = "#!/bin/sh\n[ $1 = --version ]\n";
    const archive = gzipSync(
      Buffer.concat([
        tarEntries([
          entry("VERSION", `${version} linux-${process.arch}\n`),
          entry("bin/node", program),
          entry("share/holdfast-agent.service", readFileSync(new URL("systemd/holdfast-agent.service", deploy))),
        ]),
        tarEnd,
      ]),
    );
    writeFileSync(join(guest.root, "mnt/broken.tar.gz"), archive);
    return `--file /mnt/broken.tar.gz --sha256 ${createHash("sha256").update(archive).digest("hex")}`;
  };

  beforeAll(async () => {
    installation = openInstallation();
    const up = installation.up({ HOLDFAST_UP_AGENT: "no" });
    [guest] = await Promise.all([bootGuest(name), up.ready]);
    untouched = { files: guest.files(), accounts: accounts() };
    const made = await json<AnswerOf<typeof createEnrollmentToken>>(["node", "token", "create"]);
    line = made.install_command ?? "";
    token = made.token;
  });
  afterAll(async () => {
    await guest?.remove();
    await installation.cleanUp();
  });

  it("AGENT-09 is not installed by a line whose digest is another's, nor from an address where nobody is", async () => {
    const changed = await guest.run(line.replace(/[0-9a-f]{64}/, "0".repeat(64)));
    expect(changed).toMatchObject({ code: 1, stderr: expect.stringContaining("did NOT match") });
    const elsewhere = await guest.run(line.replaceAll(/127\.0\.0\.1:\d+/g, "127.0.0.1:9"));
    expect(elsewhere.code).not.toBe(0);
    expect(guest.files()).toEqual(untouched.files);
  });

  it("AGENT-09 is installed, joined and started by one line, and the same line again changes nothing", async () => {
    const { code, stdout, stderr } = await guest.run(line);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toContain(`This machine is enrolled as node ${name}`);
    expect(stdout).toMatch(/✓ The agent is running: connected to https:\S+ as reef-\d+\n$/);
    expect(await node()).toMatchObject({ connection: "online", status: "active" });
    expect(await guest.ask(`systemctl is-enabled ${unit}; stat -c %a /etc/holdfast`)).toBe("enabled\n700\n");
    const pid = await show("MainPID");
    const again = await guest.run(line);
    expect([again.code, again.stderr]).toEqual([0, ""]);
    expect(again.stdout).toContain("is already installed");
    expect(again.stdout).toContain(`already the node ${name}`);
    expect(await show("MainPID")).toBe(pid);
    const kept = await guest.run(
      `grep -rlF ${token} /etc /opt /var /root /tmp /home; journalctl | grep -F ${token}`,
    );
    expect(kept.stdout).toBe("");
  });

  it("AGENT-01 tells journald each record, with its level and its reason", async () => {
    const records = async () => {
      const lines = (await guest.ask(`journalctl -u ${unit} -t holdfast-agent -o json`)).trim().split("\n");
      const entries = lines.map((text) => JSON.parse(text) as { PRIORITY: string; MESSAGE: string });
      return entries.map(({ PRIORITY, MESSAGE }) => ({ PRIORITY, ...JSON.parse(MESSAGE) }));
    };
    await expect.poll(records).toContainEqual(
      expect.objectContaining({
        PRIORITY: "6",
        reason: "process_alive",
        detail: expect.stringMatching(/^connected to https:/),
      }),
    );
  });

  it("AGENT-09 gives up what it never needs", async () => {
    const status = await guest.ask(`cat /proc/$(systemctl show -p MainPID --value ${unit})/status`);
    expect(status).toMatch(/^NoNewPrivs:\t1$/m);
    expect(status).toMatch(/^Seccomp:\t2$/m);
    const [, held = ""] = /^CapEff:\t([0-9a-f]+)$/m.exec(status) ?? [];
    // Bits of linux/capability.h: raw network, ptrace, modules, administration of all kinds.
    for (const bit of [12n, 13n, 16n, 19n, 21n]) expect((BigInt(`0x${held}`) >> bit) & 1n).toBe(0n);
  });

  it("AGENT-09 makes a user, and its shell goes on while the agent hangs, is ended by its watchdog and started again", async () => {
    await json<Allocation>(["allocation", "create", "--node", name, "--user", "hft-alice"]);
    const env = {
      PATH: process.env["PATH"] ?? "",
      HOLDFAST_DATA_DIR: installation.dataDir,
      HOME: installation.dataDir,
    };
    shell = openTty({
      file: process.execPath,
      args: [command, "terminal", `hft-alice@${name}`],
      env: { ...env, TERM: "xterm" },
    });
    await untilItAnswers(shell);
    shellPid = await ask(shell, "echo $$:$USER");
    expect(shellPid).toMatch(/^\d+:hft-alice$/);
    expect(await guest.ask("systemctl list-units --plain --no-legend 'holdfast-terminal-*'")).toMatch(/\.service/);
    const limits = await guest.ask("systemctl show -p TasksMax,MemoryMax 'holdfast-terminal-*'");
    expect(limits).toContain(`TasksMax=${await ask(shell, "ulimit -Hu")}\n`);
    expect(limits).toMatch(/MemoryMax=\d+/);
    expect(await ask(shell, "for at in /tmp /var/tmp /dev/shm; do echo > $at/of-alice; done; ls /tmp")).toBe(
      "of-alice",
    );
    expect((await guest.run("ls /tmp/of-alice /var/tmp/of-alice /dev/shm/of-alice")).stdout).toBe("");
    const drop = "/run/systemd/system/holdfast-agent.service.d";
    await guest.ask(
      `mkdir -p ${drop} && printf '[Service]\\nWatchdogSec=8\\nRestartSec=100ms\\n' >${drop}/test.conf`,
    );
    await guest.ask(`systemctl daemon-reload && systemctl restart ${unit}`);
    await until(isConnected);
    await guest.ask(`kill -STOP $(systemctl show -p MainPID --value ${unit})`);
    await until(async () => (await show("NRestarts")) !== "0");
    await guest.ask(`rm ${drop}/test.conf && systemctl daemon-reload && systemctl restart ${unit}`);
    await expect.poll(() => guest.ask(`journalctl -u ${unit} -o cat`)).toContain("Watchdog timeout");
    await until(isConnected);
    expect(await ask(shell, "echo $$:$USER")).toBe(shellPid);
  });

  it("DRIFT-13 its last words are at the server when it crashes or is missing, and not when it is stopped", async () => {
    const words = async () => {
      const { items } = await json<AnswerOf<typeof listNodeDiagnostics>>(["node", "diagnostics", name]);
      return items.flatMap(({ host, detail }) => (host ? [{ ...host, detail }] : []));
    };
    const before = (await words()).length;
    await guest.ask(`systemctl stop ${unit} && systemctl start ${unit}`);
    await until(isConnected);
    await guest.ask(`systemctl kill --kill-who=main --signal=SIGSEGV ${unit}`);
    await until(async () => (await words()).length === before + 1);
    expect((await words())[0]).toMatchObject({
      ...{ service: "failed", detail: "systemd reports signal (killed, status SEGV)" },
    });
    await until(async () => (await show("ActiveState")) === "active");
    const program = "/opt/holdfast-agent/current/bin/node";
    await guest.ask(`mv ${program} ${program}.away && systemctl kill --kill-who=main --signal=SIGKILL ${unit}`);
    await until(async () => (await words())[0]?.exec === "missing");
    expect(await guest.ask("ls -A /run/holdfast-agent; stat -c %a /run/holdfast-agent")).toContain("700");
    await until(async () => {
      const { causes } = await json<AnswerOf<typeof explainNode>>(["node", "explain", name]);
      return causes[0]?.reason === "node_agent_binary_invalid";
    });
    await guest.ask(`mv ${program}.away ${program} && systemctl restart ${unit}`);
    await until(isConnected);
  });

  it("AGENT-09 is upgraded in place, under the tenant's shell, and goes back from a version that does not work", async () => {
    const before = await current();
    const broken = await guest.run(`holdfast agent upgrade ${bringBroken("9.9.8")}`);
    expect([broken.code, broken.stderr]).toEqual([1, expect.stringContaining("is running again")]);
    expect(await current()).toBe(before);
    const upgraded = await guest.run(`holdfast agent upgrade ${await bringWorking("9.9.9")}`);
    expect([upgraded.code, upgraded.stderr]).toEqual([0, ""]);
    expect(await current()).toMatch(/^versions\/9\.9\.9-/);
    expect((await guest.ask("holdfast --version")).trim()).toBe("9.9.9");
    expect((await guest.ask("ls /opt/holdfast-agent/versions")).trim().split("\n")).toHaveLength(2);
    expect(await ask(shell, "echo $$:$USER")).toBe(shellPid);
    shell.type("exit\r");
    await shell.ended;
    await until(async () => (await node())?.agent_version === "9.9.9");
  });

  it("AGENT-09 is there again after the machine was restarted", async () => {
    await guest.reboot();
    await until(isConnected);
    expect(await show("NRestarts")).toBe("0");
    expect((await installation.run(["task", "run", name, "node.noop"])).code).toBe(0);
  });

  it.skipIf(lacksVms())(
    "AGENT-09 VM-03 VM-08 launches and removes a VM with the capabilities that deploy/README.md adds, in units of its own",
    async () => {
      const images = "var/lib/jenkins-qemu/base";
      mkdirSync(join(guest.root, images), { recursive: true });
      copyFileSync(smallGuest(), join(guest.root, images, "small.qcow2"));
      const settings = ["VM_HOST=on", "VM_ACCELERATOR=tcg", "VM_UPLINK=off", "VM_WARM=small:tiny=1"];
      await guest.ask(`printf 'HOLDFAST_%s\\n' ${settings.join(" ")} >>/etc/holdfast/agent.env`);
      const readme = readFileSync(new URL("README.md", deploy), "utf8");
      const documented = /```\n(mkdir -p [^`]+vm-host[.]conf[^`]+)```/.exec(readme)?.[1] ?? "";
      await guest.ask(documented);
      type Hosts = AnswerOf<typeof listHosts>;
      const host = async () => (await json<Hosts>(["host", "list"])).items[0];
      await expect.poll(host, { timeout: 120_000 }).toMatchObject({ schedulable: true, accelerator: "tcg" });
      // Of a VM that waits: it is removed with the installation.
      await expect.poll(async () => (await host())?.warm_vms.length, { timeout: 120_000 }).toBe(1);
      await expect.poll(async () => (await installation.run(["image", "add", "small"])).code).toBe(0);
      const lease = await json<AnswerOf<typeof getLease>>([
        ...["lease", "create", "--image", "small", "--profile", "tiny", "--wait"],
      ]);
      expect(lease).toMatchObject({ status: "connected" });
      const unitsOf = (vm: string) => guest.ask(`systemctl list-units --plain --no-legend 'holdfast-*${vm}*'`);
      expect(await unitsOf(lease.vm_id ?? "")).toMatch(
        /holdfast-[0-9a-f]{12}-\S+[.]service loaded active running/,
      );
      await guest.ask(`systemctl restart ${unit}`);
      await until(isConnected);
      await json(["lease", "terminate", lease.id]);
      const status = async () => (await json<AnswerOf<typeof getLease>>(["lease", "show", lease.id])).status;
      await expect.poll(status, { timeout: 60_000 }).toBe("terminated");
      // In a container with cgroups of version 1, systemd gets no notice of one that has become empty: it checks when it is reloaded.
      const reloaded = () => guest.ask("systemctl daemon-reload").then(() => unitsOf(lease.vm_id ?? ""));
      await expect.poll(reloaded, { timeout: 60_000 }).toBe("");
      expect(await guest.ask("ls /var/lib/jenkins-qemu/*")).not.toContain(lease.vm_id);
    },
  );

  it("BM-02 removes everything of a released user, with the powers that its unit leaves it", async () => {
    const { id } = await json<Allocation>(["allocation", "create", "--node", name, "--user", "hft-bob"]);
    const left = "cp /bin/true $at/of-bob; chmod 4755 $at/of-bob; touch /dev/mqueue/of-bob";
    const script = `for at in /tmp /var/tmp /dev/shm; do ${left}; done; ipcmk --shmem 4096`;
    await guest.ask(`setpriv --reuid hft-bob --regid hft-bob --clear-groups sh -ec '${script}'`);
    const ofBob = "ls -A /tmp/of-bob /var/tmp/of-bob /dev/shm/of-bob /dev/mqueue/of-bob 2>/dev/null; true";
    expect((await guest.ask(ofBob)).trim().split("\n")).toHaveLength(4);
    expect((await installation.run(["allocation", "release", id])).code).toBe(0);
    expect(await guest.ask(ofBob)).toBe("");
    expect(await guest.ask("tail -n +2 /proc/sysvipc/shm")).toBe("");
  });

  it("AGENT-09 is not removed under a tenant's user, and then leaves no file, no user and no unit", async () => {
    const refused = await guest.run("holdfast agent uninstall");
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("hft-alice")]);
    expect(await isConnected()).toBe(true);
    const { code, stdout, stderr } = await guest.run("holdfast agent uninstall --remove-users");
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toContain(`holdfast node retire ${name}`);
    // Base images are their owner's.
    rmSync(join(guest.root, "var/lib/jenkins-qemu/base"), { recursive: true, force: true });
    for (const empty of ["cloud-init", "overlays", "."])
      if (existsSync(join(guest.root, "var/lib/jenkins-qemu")))
        rmdirSync(join(guest.root, "var/lib/jenkins-qemu", empty));
    expect(guest.files()).toEqual(untouched.files);
    expect(accounts()).toBe(untouched.accounts);
    expect(await guest.ask("systemctl list-units --all --plain --no-legend 'holdfast*'")).toBe("");
    expect(await guest.ask("systemctl list-unit-files --no-legend 'holdfast*'; ls -A /home")).toBe("");
  });

  it("AGENT-09 is not installed from what is not known to be it, and its installer says what is missing", async () => {
    writeFileSync(join(guest.root, "mnt/install-agent.sh"), readFileSync(new URL("install-agent.sh", deploy)));
    const refused = async (options: string) => (await guest.run(`sh /mnt/install-agent.sh ${options}`)).stderr;
    expect(await refused("")).toContain('Use the command that "Add a node" prints');
    expect(await refused("--token hfe_x")).toContain("Every user of this machine could read");
    expect(await refused("--file /mnt/none.tar.gz")).toContain("cannot be read");
    expect(await refused("--file /mnt/broken.tar.gz")).toContain(
      "The expected SHA-256 of /mnt/broken.tar.gz is not known",
    );
    expect(await refused(`--file /mnt/broken.tar.gz --sha256 ${"1".repeat(64)}`)).toContain(
      "nothing was installed",
    );
    expect(await refused("upgrade --file /mnt/broken.tar.gz")).toContain("No agent is installed");
    expect(await guest.ask("sh /mnt/install-agent.sh uninstall")).toContain("The agent is not installed");
    expect(guest.files()).toEqual(untouched.files);
  });
});
