// What escapes reach for on the host: a file, sockets, a process with a secret in its environment, a network with a metadata
// address. All of it belongs to the test and is gone afterwards.

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { hostname } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { uuidv7 } from "@holdfast/kit/uuid";
import { scratchDirectory } from "../../../../testkit/agent/scratch.ts";
import { atEnd } from "../../../../testkit/lifetime/at-end.ts";

export type Planted = {
  /** In the file, in the environment of the victim, and in what it has open. */
  canary: string;
  tag: string;
  file: string;
  log: string;
  /** Where runs have their directories, one of which belongs to another run. */
  workdirs: string;
  /** A mount. */
  readonly: string;
  /** A process, which nothing can disturb. */
  victim: number;
  descriptor: number;
  hostname: string;
  port: number;
  /** A process in a network of its own, in which the metadata address answers. */
  metadata: number;
  socket: string;
  abstract: string;
  /** How many processes a run may have. */
  pids: number;
};

const VICTIM = `
$| = 1;
$SIG{USR1} = "IGNORE";
open(my $handle, "<", $ARGV[0]);
print fileno($handle), "\\n";
sysread(STDIN, my $nothing, 1);`;

const METADATA = `
$| = 1;
use Socket;
system("ip link set lo up && ip address add 169.254.169.254/32 dev lo");
socket(my $server, PF_INET, SOCK_STREAM, 0);
bind($server, pack_sockaddr_in(80, inet_aton("169.254.169.254"))) && listen($server, 5) or die("$!");
print "listening\\n";
sysread(STDIN, my $nothing, 1);`;

export async function plant({ workdirs, pids }: Pick<Planted, "workdirs" | "pids">): Promise<Planted> {
  const directory = scratchDirectory();
  const id = uuidv7();
  const canary = `canary-${id}`;
  const at = (name: string) => join(directory, name);
  for (const name of ["file", "log"]) writeFileSync(at(name), canary, { mode: 0o666 });
  const other = join(workdirs, uuidv7());
  mkdirSync(other, { recursive: true });
  writeFileSync(join(other, "theirs"), canary);
  mkdirSync(at("readonly"));
  execFileSync("mount", ["-t", "tmpfs", "-o", "ro", "none", at("readonly")]);
  atEnd(() => execFileSync("umount", [at("readonly")]));
  const victim = await start("perl", ["-e", VICTIM, at("file")], { CANARY: canary });
  const metadata = await start("unshare", ["--net", "perl", "-e", METADATA], {});
  const abstract = `holdfast-${id}`;
  await listen({ path: at("sock") });
  await listen({ path: `\0${abstract}` });
  return {
    ...{ canary, tag: `holdfast-${id}`, file: at("file"), log: at("log"), workdirs, readonly: at("readonly") },
    ...{ victim: victim.pid, descriptor: Number(victim.line), hostname: hostname(), pids },
    ...{ port: await listen({ port: 0, host: "127.0.0.1" }), metadata: metadata.pid },
    ...{ socket: at("sock"), abstract },
  };
}

/** It ends when its input does, at the latest with the test. Resolves once it has printed a line. */
async function start(command: string, args: string[], env: Record<string, string>) {
  const child = spawn(command, args, {
    env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", ...env },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const gone = once(child, "exit");
  atEnd(async () => {
    child.stdin.end();
    await gone;
  });
  const [line] = (await once(createInterface(child.stdout), "line")) as [string];
  return { pid: child.pid ?? 0, line };
}

async function listen(where: { port: number; host: string } | { path: string }): Promise<number> {
  const server = createServer((socket) => socket.end()).listen(where);
  await once(server, "listening");
  atEnd(() => new Promise((resolve) => server.close(resolve)));
  return "path" in where ? 0 : (server.address() as AddressInfo).port;
}
