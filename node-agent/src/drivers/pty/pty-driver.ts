// The PTY driver of a Linux host: holders are processes of Node.js with node-pty, confined as the host allows it.

import { confinementOf, hasSystemd, type ShellLimits, shellLimits } from "./confinement.ts";
import type { PtyDriver } from "./driver.ts";
import { connectToHolder } from "./holder-connection.ts";
import { launchWith } from "./launch.ts";

/** `limits`: of a shell and all that runs in it. */
export function ptyDriver(limits: ShellLimits = shellLimits()): PtyDriver {
  return {
    launch: launchWith(limits),
    connect: connectToHolder,
    confinementOf: (user) => confinementOf(user, limits),
    hasControlGroups: hasSystemd,
  };
}
