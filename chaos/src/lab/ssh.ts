// A real sshd on a node of a lab, and the desk's way to it: the login by which `holdfast preflight --node-host` asks the host itself.

import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { PATIENCE_SECONDS, until } from "../until.ts";
import { holdfast } from "./command.ts";
import type { Network, NetworkHost } from "./network.ts";
import { type RunningProgram, start } from "./program.ts";

/** Below the lab's directory: an `ssh` that knows key and host, for the PATH of commands at the desk. */
export const sshCommands = (directory: string) => join(directory, "desk-bin");

export async function openSsh(options: {
  network: Network;
  place: NetworkHost;
  directory: string;
  /** What `holdfast agent …` needs on the host. */
  env: Record<string, string>;
}): Promise<RunningProgram> {
  const { network, place, env } = options;
  const directory = join(options.directory, "ssh");
  const bin = sshCommands(options.directory);
  for (const path of [directory, bin]) mkdirSync(path, { mode: 0o755 });
  const [key, hostKey] = [join(directory, "id"), join(directory, "host")];
  for (const file of [key, hostKey]) {
    execFileSync("/usr/bin/ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", file]);
  }
  writeFileSync(join(directory, "known_hosts"), `${place.address} ${readFileSync(`${hostKey}.pub`, "utf8")}`);
  cpSync(`${key}.pub`, join(directory, "authorized_keys"));
  script(join(bin, "ssh"), `exec /usr/bin/ssh -F '${join(directory, "client")}' "$@"`);
  script(join(directory, "holdfast"), `exec '${process.execPath}' '${holdfast}' "$@"`);
  writeFileSync(
    join(directory, "client"),
    `IdentityFile ${key}\nIdentitiesOnly yes\nUserKnownHostsFile ${join(directory, "known_hosts")}\nStrictHostKeyChecking yes\n`,
  );
  const variables = { ...env, PATH: `${directory}:/usr/bin:/bin` };
  const settings = [
    ...[`HostKey ${hostKey}`, `AuthorizedKeysFile ${join(directory, "authorized_keys")}`, "PidFile none"],
    ...["UsePAM no", "PasswordAuthentication no", "PermitRootLogin prohibit-password", "StrictModes no"],
    `SetEnv ${Object.entries(variables)
      .map(([name, value]) => `${name}=${value}`)
      .join(" ")}`,
  ];
  writeFileSync(join(directory, "server"), `${settings.join("\n")}\n`);
  await reachFromDesk(network, place);
  // It wants a directory that only a service manager makes: on the host's own /run.
  await place.host.run("sh", "-c", "mount -t tmpfs -o mode=755 tmpfs /run && mkdir -m 755 /run/sshd");
  const logFile = join(options.directory, "sshd.log");
  const sshd = start({
    ...{ host: place.host, name: "sshd", logFile },
    command: ["/usr/sbin/sshd", "-D", "-e", "-f", join(directory, "server")],
  });
  const problem = () => (existsSync(logFile) ? `: ${readFileSync(logFile, "utf8")}` : "");
  await until("sshd listens", PATIENCE_SECONDS, () => answers(place.address), problem);
  return sshd;
}

/** Packets between desk and node pass the control host and the router. No fault touches this way. */
async function reachFromDesk({ router, control, deskAddress }: Network, { address }: NetworkHost): Promise<void> {
  const subnet = (ip: string) => ip.replace(/[.]\d+$/, ".0/24");
  await control.host.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward");
  await router.ip(`route add ${subnet(deskAddress)} via ${control.address}`);
  execFileSync("ip", ["route", "add", subnet(address), "via", control.desk]);
}

function answers(host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port: 22 });
    socket.once("data", () => resolve(true)).once("error", () => resolve(false));
    socket.once("close", () => resolve(false));
    socket.once("data", () => socket.destroy());
  });
}

function script(path: string, line: string): void {
  writeFileSync(path, `#!/bin/sh\n${line}\n`);
  chmodSync(path, 0o755);
}
