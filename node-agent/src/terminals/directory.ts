// The directory with the holders' sockets, <state dir>/terminals, and what their names say. The state
// directory and not /run, because several agents may run on one host and each must find its own. Only the
// agent's user can enter it, so names can be trusted; what a holder itself reports comes from a tenant.
//
//   <id>.starting                    not to be connected to yet
//   <id>.spare                       ready to be assigned
//   <session>.<pid>.<started>.shell  a tenant's, with the holder's process

import { mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import type { ProcessIdentity } from "@holdfast/kit/processes";

export type FoundSocket =
  | { kind: "spare" | "starting"; name: string }
  | { kind: "shell"; name: string; sessionId: string; holder: ProcessIdentity; since: number };

/** How the last attempt to reach the gateway went. */
export type GatewayNote = { url: string; at: string; reached: boolean; detail: string | null };

export const directoryOf = (stateDir: string) => `${stateDir}/terminals`;
export const gatewayNotePath = (stateDir: string) => `${directoryOf(stateDir)}/gateway.json`;

export function makeDirectory(stateDir: string): string {
  const directory = directoryOf(stateDir);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  return directory;
}

export const spareName = (id: string) => `${id}.spare`;
export const shellName = (sessionId: string, { pid, startTicks }: ProcessIdentity) =>
  `${sessionId}.${pid}.${startTicks}.shell`;

/** Empty when the directory does not exist. */
export function findSockets(stateDir: string): FoundSocket[] {
  return namesIn(directoryOf(stateDir)).flatMap((name): FoundSocket[] => {
    const [, sessionId, pid, startTicks] = /^([0-9a-f-]{36})\.(\d+)\.(\d+)\.shell$/.exec(name) ?? [];
    if (sessionId && pid && startTicks) {
      // The ctime is the time of the rename, when it became a shell.
      const since = statSync(`${directoryOf(stateDir)}/${name}`, { throwIfNoEntry: false })?.ctimeMs;
      if (since === undefined) return [];
      return [{ kind: "shell", name, sessionId, holder: { pid: Number(pid), startTicks }, since }];
    }
    if (name.endsWith(".spare")) return [{ kind: "spare", name }];
    return name.endsWith(".starting") ? [{ kind: "starting", name }] : [];
  });
}

/** Undefined: no attempt yet, or the file cannot be read. */
export function readGatewayNote(stateDir: string): GatewayNote | undefined {
  try {
    const { url, at, reached, detail } = JSON.parse(readFileSync(gatewayNotePath(stateDir), "utf8"));
    const whole = typeof url === "string" && typeof at === "string" && typeof reached === "boolean";
    return whole ? { url, at, reached, detail: typeof detail === "string" ? detail : null } : undefined;
  } catch {
    return undefined;
  }
}

export function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
