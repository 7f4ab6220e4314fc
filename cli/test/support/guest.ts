// A machine of its own under a real systemd with journald: a container of systemd-nspawn with this host's /usr,
// read-only, and nothing else of it, so that it is there in a second and nothing has to be downloaded. It shares
// the host's network, and reaches what the test runs on loopback.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { until } from "../../../testkit/processes/holdfast.ts";

export type Said = { code: number | null; stdout: string; stderr: string };

export type Guest = {
  /** Its files as they are seen from here; /usr/local is `local`. */
  root: string;
  /** A line for its shell, as root. */
  run(line: string): Promise<Said>;
  /** The same; expects success, and answers what it printed. */
  ask(line: string): Promise<string>;
  reboot(): Promise<void>;
  /** Names of all its files but those that any running system changes. */
  files(): string[];
  remove(): Promise<void>;
};

/** What a new Debian has below /etc, as far as anything here asks for it. */
const settings = [
  ...["passwd", "group", "shadow", "gshadow", "login.defs", "shells", "skel", "default/useradd", "nsswitch.conf"],
  ...["ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "pam.d", "security", "profile", "bash.bashrc"],
  ...["dbus-1", "environment", "host.conf"],
];
const changing = [
  // What the test brings stands in /mnt.
  /^\/mnt\//,
  /^\/(proc|sys|dev|run|var\/log|var\/lib\/systemd|var\/lib\/dbus|var\/cache|etc\/machine-id)(\/|$)/,
  /^(\/var)?\/tmp\/systemd-private-[0-9a-f]+-systemd-/,
  // Any change of an account leaves the file as it was before.
  /^\/etc\/(passwd|group|shadow|gshadow)-$/,
];
/** Whoever enters from outside brings all powers along, over the clock of this host too. */
const confined = ["setpriv", "--bounding-set=-sys_time,-sys_module,-sys_rawio,-sys_boot,-mac_admin"];
const environment = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

export async function bootGuest(name: string): Promise<Guest> {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-guest-"));
  const root = join(directory, name);
  const local = join(directory, "local");
  furnish(root, name);
  mkdirSync(join(local, "bin"), { recursive: true });
  const cgroups = makeCgroups(name);
  let nspawn: ChildProcess;
  let leader = 0;

  const run = async (line: string): Promise<Said> => {
    const enter = ["-t", String(leader), "-m", "-u", "-i", "-p", "-C", ...confined, "env", "-i", environment];
    // A process that is still being made a container is this host: nothing may happen there.
    const guarded = `[ "$(cat /etc/hostname)" = ${name} ] || exit 99; ${line}`;
    return ended(spawn("nsenter", [...enter, "sh", "-c", guarded], { stdio: ["ignore", "pipe", "pipe"] }));
  };
  const boot = async () => {
    let console = "";
    const enter = cgroups.map((path) => `echo $$ >${path}/cgroup.procs`).join(" && ");
    nspawn = spawn(
      "sh",
      [
        ...["-c", `${enter} && exec "$@"`, "sh", "systemd-nspawn"],
        ...["--quiet", "--register=no", "--keep-unit", "--boot", `--directory=${root}`, `--machine=${name}`],
        ...["--bind-ro=/usr", `--bind=${local}:/usr/local`],
      ],
      { stdio: ["ignore", "pipe", "pipe"], cwd: "/" },
    );
    for (const stream of [nspawn.stdout, nspawn.stderr]) stream?.on("data", (text) => (console += text));
    await until(async () => {
      if (nspawn.exitCode !== null) throw new Error(`systemd-nspawn ended with ${nspawn.exitCode}:\n${console}`);
      leader = childOf(nspawn.pid ?? 0);
      return leader !== 0 && (await run("systemctl is-system-running")).stdout.trim() === "running";
    });
  };
  const powerOff = async () => {
    if (nspawn.exitCode !== null || nspawn.signalCode !== null) return;
    const gone = once(nspawn, "exit");
    nspawn.kill("SIGTERM");
    await gone;
  };

  const remove = async () => {
    await powerOff();
    for (const path of cgroups) removeCgroup(path);
    rmSync(directory, { recursive: true, force: true });
  };

  await boot().catch(async (error) => {
    await remove();
    throw error;
  });
  return {
    root,
    run,
    async ask(line) {
      const { code, stdout, stderr } = await run(line);
      if (code !== 0) throw new Error(`${line} ended with ${code}:\n${stdout}${stderr}`);
      return stdout;
    },
    async reboot() {
      await powerOff();
      await boot();
    },
    files: () => [...namesBelow(root, "/"), ...namesBelow(local, "/usr/local/")].sort(),
    remove,
  };
}

function furnish(root: string, name: string): void {
  for (const path of ["usr", "etc/systemd/system", "var", "root", "home", "opt", "tmp", "mnt"]) {
    mkdirSync(join(root, path), { recursive: true });
  }
  for (const link of ["bin", "sbin", "lib", "lib64"]) {
    if (existsSync(`/${link}`) && lstatSync(`/${link}`).isSymbolicLink()) {
      symlinkSync(readlinkSync(`/${link}`), join(root, link));
    }
  }
  for (const path of settings.filter((one) => existsSync(`/etc/${one}`))) {
    mkdirSync(dirname(join(root, "etc", path)), { recursive: true });
    cpSync(`/etc/${path}`, join(root, "etc", path), { recursive: true, verbatimSymlinks: true });
  }
  writeFileSync(join(root, "etc/os-release"), readFileSync("/etc/os-release"));
  writeFileSync(join(root, "etc/hostname"), `${name}\n`);
  writeFileSync(join(root, "etc/hosts"), `127.0.0.1 localhost ${name}\n`);
  writeFileSync(join(root, "etc/machine-id"), "");
}

/** Of its own, in each hierarchy that systemd uses: in those of the tests what it makes would stay. */
function makeCgroups(name: string): string[] {
  const mounted = ["/sys/fs/cgroup", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified"];
  const paths = mounted.filter((path) => existsSync(`${path}/cgroup.procs`)).map((path) => `${path}/${name}`);
  for (const path of paths) mkdirSync(path);
  return paths;
}

function removeCgroup(path: string): void {
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    if (entry.isDirectory()) removeCgroup(`${path}/${entry.name}`);
  }
  rmdirSync(path);
}

function childOf(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ")[0] || 0);
  } catch {
    return 0;
  }
}

function namesBelow(directory: string, shown: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: "utf8" })
    .map((name) => `${shown}${name}`)
    .filter((name) => !changing.some((one) => one.test(name)));
}

async function ended(child: ChildProcess): Promise<Said> {
  let [stdout, stderr] = ["", ""];
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const [code] = (await once(child, "close")) as [number | null];
  return { code, stdout, stderr };
}
