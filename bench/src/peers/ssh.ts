// Debian's OpenSSH: a server of the bench's own on a loopback port, with its own keys, and `ssh -tt`.

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Lab } from "../lab.ts";
import { answers, freePort } from "../ports.ts";
import type { PlainShell } from "../terminal/plain-shell.ts";
import type { TerminalSide } from "../terminal/terminal.ts";

const server = "/usr/sbin/sshd";
const client = "/usr/bin/ssh";
const keyMaker = "/usr/bin/ssh-keygen";
/** Compiled into Debian's server, which refuses to start without it. */
const separation = "/run/sshd";

export type SshPeer = TerminalSide & { serverPid: number };

export async function startSsh(lab: Lab, shell: PlainShell): Promise<SshPeer> {
  if (!existsSync(server)) throw new Error(`${server} is missing; apt-get install openssh-server`);
  if (!existsSync(separation)) {
    mkdirSync(separation, { mode: 0o755 });
    lab.onClose(async () => rmSync(separation, { recursive: true }));
  }
  const directory = lab.directory();
  const port = await freePort();
  for (const key of ["host", "client"]) {
    execFileSync(keyMaker, ["-q", "-t", "ed25519", "-N", "", "-f", join(directory, key)]);
  }
  copyFileSync(join(directory, "client.pub"), join(directory, "authorized_keys"));
  const serverConfiguration = join(directory, "sshd_config");
  const clientConfiguration = join(directory, "ssh_config");
  writeFileSync(
    serverConfiguration,
    lines({
      ListenAddress: "127.0.0.1",
      Port: port,
      HostKey: join(directory, "host"),
      AuthorizedKeysFile: join(directory, "authorized_keys"),
      PidFile: "none",
      PermitRootLogin: "prohibit-password",
      StrictModes: "no",
      UsePAM: "no",
      UseDNS: "no",
      PrintMotd: "no",
      PrintLastLog: "no",
      MaxStartups: 200,
      // Without it the start-up files of whoever runs the bench are measured.
      SetEnv: `HOME=${shell.home}`,
    }),
  );
  writeFileSync(
    clientConfiguration,
    lines({
      HostName: "127.0.0.1",
      Port: port,
      IdentityFile: join(directory, "client"),
      IdentitiesOnly: "yes",
      StrictHostKeyChecking: "no",
      UserKnownHostsFile: join(directory, "known_hosts"),
      LogLevel: "ERROR",
    }),
  );
  const program = lab.start({ command: server, args: ["-D", "-e", "-f", serverConfiguration] });
  await answers(port, program);
  return { serverPid: program.pid, open: opener(clientConfiguration) };
}

function opener(configuration: string): TerminalSide["open"] {
  return async (listener) => {
    let current = listener;
    const program = spawn(client, ["-tt", "-F", configuration, "peer"], {
      stdio: ["pipe", "pipe", "inherit"],
      env: { PATH: process.env["PATH"], TERM: "xterm-256color" },
    });
    const ended = once(program, "exit");
    program.stdout.on("data", (output: Buffer) => current(output));
    return {
      write: (text) => program.stdin.write(text),
      listen: (next) => {
        current = next;
      },
      close: async () => {
        program.kill();
        await ended;
      },
    };
  };
}

function lines(settings: Record<string, string | number>): string {
  return Object.entries(settings)
    .map(([name, value]) => `${name} ${value}\n`)
    .join("");
}
