// What a sandbox of bubblewrap consists of, as options. They are given by a descriptor, never as arguments of the process: the
// environment may contain secrets. Of the host's files, a script sees its programs and libraries and what those need of /etc;
// neither homes nor the agent's own files, which a user that is the agent's would be able to read.

import { lstatSync, readlinkSync } from "node:fs";
import { MINIMAL_ENVIRONMENT, type SandboxOrder, SECRET_FILE, SECRET_FILE_VARIABLE } from "../driver.ts";

/** Descriptors of bubblewrap, beside the three usual ones. */
export const descriptors = {
  options: 3,
  filter: 4,
  status: 5,
  control: 6,
  passwd: 7,
  group: 8,
  secret: 9,
} as const;

const TMP_BYTES = 64 * 1024 * 1024;
/** Inside. What it is on the host is decided by the driver. */
const USER = 1000;
export const PASSWD = `sandbox:x:${USER}:${USER}::/work:/bin/sh\n`;
export const GROUP = `sandbox:x:${USER}:\n`;

const programs = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
const configuration = [
  ...[
    "alternatives",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "ssl/certs",
    "ssl/openssl.cnf",
    "pki",
    "crypto-policies",
  ],
  ...[
    "localtime",
    "timezone",
    "nsswitch.conf",
    "protocols",
    "services",
    "mime.types",
    "magic",
    "terminfo",
    "gai.conf",
  ],
];
const networkConfiguration = ["resolv.conf", "hosts", "host.conf"];

export type Isolated = Pick<SandboxOrder, "env" | "secret" | "network" | "limits">;

export function optionsOf({ env, secret, network, limits }: Isolated): string[] {
  const { options: _, ...fd } = descriptors;
  return [
    ...["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup"],
    ...(network ? [] : ["--unshare-net"]),
    ...["--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "sandbox"],
    ...["--uid", `${USER}`, "--gid", `${USER}`, "--seccomp", `${fd.filter}`, "--json-status-fd", `${fd.status}`],
    ...["--ro-bind", "/usr", "/usr", ...programs.flatMap(asOnHost)],
    ...[...configuration, ...(network ? networkConfiguration : [])].flatMap((name) => [
      ...["--ro-bind-try", `/etc/${name}`, `/etc/${name}`],
    ]),
    ...["--file", `${fd.passwd}`, "/etc/passwd", "--file", `${fd.group}`, "/etc/group"],
    ...["--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev"],
    ...["--perms", "1777", "--size", `${TMP_BYTES}`, "--tmpfs", "/tmp"],
    ...["--perms", "0700", "--size", `${limits.diskBytes}`, "--tmpfs", "/work"],
    ...(secret === undefined ? [] : ["--perms", "0400", "--file", `${fd.secret}`, SECRET_FILE]),
    ...["--remount-ro", "/", "--chdir", "/work", "--clearenv"],
    ...Object.entries({
      ...{ ...MINIMAL_ENVIRONMENT, HOME: "/work", TMPDIR: "/tmp" },
      ...env,
      ...(secret === undefined ? {} : { [SECRET_FILE_VARIABLE]: SECRET_FILE }),
    }).flatMap(([name, value]) => ["--setenv", name, value]),
  ];
}

/** Most distributions have links to /usr here. */
function asOnHost(path: string): string[] {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found?.isSymbolicLink()) return ["--symlink", readlinkSync(path), path];
  return found?.isDirectory() ? ["--ro-bind", path, path] : [];
}
