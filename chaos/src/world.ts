// A run's own world, as its first process finds it (`enter.ts`): made ready, and ended when whoever started it is gone.

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { Socket } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const repository = fileURLToPath(new URL("../../", import.meta.url));

/** Any directory that everybody has and the project is not in: it is hidden in here. */
const mountPoint = ["/mnt", "/srv", "/media", "/opt"].find(
  (path) => existsSync(path) && !repository.startsWith(path),
);

/** Returns a directory in memory, on a file system that nobody else sees. */
export function enterWorld(): string {
  // Whoever started us is gone, or wants us to stop. Everything in here ends with this process.
  new Socket({ fd: 3 })
    .on("data", () => process.exit(130))
    .on("close", () => process.exit(130))
    .on("error", () => process.exit(130));
  if (mountPoint === undefined) throw new Error("there is no directory to work in: make /mnt");
  execFileSync("mount", ["-t", "tmpfs", "-o", "mode=711", "tmpfs", mountPoint]);
  mkdirSync(join(mountPoint, "tmp"), { mode: 0o1777 });
  process.env["TMPDIR"] = join(mountPoint, "tmp");
  execFileSync("ip", ["link", "set", "lo", "up"]);
  return mountPoint;
}

/** Users that are made in here exist only in here. */
export function withOwnUsers(directory: string): void {
  const own = join(directory, "etc");
  mkdirSync(own);
  execFileSync("cp", ["-a", "/etc/.", own]);
  execFileSync("mount", ["--bind", own, "/etc"]);
  for (const path of ["/home", "/var/mail"])
    execFileSync("mount", ["-t", "tmpfs", "-o", "mode=755", "tmpfs", path]);
}
