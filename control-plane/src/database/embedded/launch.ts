// Starts a program so that it ends with this process, and under another account if one is set.
// The kernel sends the signal when our process dies, whatever kills it; where setpriv is missing, the
// next start stops what was left over.

import { existsSync } from "node:fs";
import type { Account } from "./account.ts";

const setpriv = ["/usr/bin/setpriv", "/bin/setpriv"].find((path) => existsSync(path));

export type Launch = {
  command: string;
  args: string[];
  spawn: { cwd: string; env: Record<string, string>; uid?: number; gid?: number };
};

export function dyingWithUs(options: {
  account: Account | undefined;
  program: string;
  args: string[];
  signal: "INT" | "KILL";
}): Launch {
  const { account, program, args, signal } = options;
  // The current directory may be one that the account cannot enter; our environment is not passed on.
  const spawn = { cwd: "/", env: { LC_ALL: "C", TZ: "UTC" } };
  if (setpriv === undefined) {
    return { command: program, args, spawn: { ...spawn, ...(account && { uid: account.uid, gid: account.gid }) } };
  }
  const identity = account ? [`--reuid=${account.uid}`, `--regid=${account.gid}`, "--clear-groups"] : [];
  return { command: setpriv, args: [...identity, "--pdeathsig", signal, program, ...args], spawn };
}
