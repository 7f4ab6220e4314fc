// A Redis of the bench's own, on a free port of loopback, with its append-only log on the disk.

import { existsSync } from "node:fs";
import type { Lab } from "./lab.ts";
import { answers, freePort } from "./ports.ts";

const server = "/usr/bin/redis-server";

/** Why there is none on this machine. */
export function missingRedis(): string | undefined {
  return existsSync(server) ? undefined : `${server} is missing; install it: apt-get install redis-server`;
}

export async function startRedis(lab: Lab, appendfsync: "everysec" | "always"): Promise<number> {
  const port = await freePort();
  const program = lab.start({
    command: server,
    args: [
      ...["--port", String(port), "--bind", "127.0.0.1", "--dir", lab.directory()],
      ...["--save", "", "--appendonly", "yes", "--appendfsync", appendfsync, "--daemonize", "no"],
    ],
  });
  await answers(port, program);
  return port;
}
