// The directory with the holders' sockets, <state dir>/terminals, and what their names say. The state
// directory and not /run, because several agents may run on one host and each must find its own. Only the
// agent's user can enter it, so names can be trusted; what a holder itself reports comes from a tenant.
//
//   <id>.starting                    not to be connected to yet
//   <id>.spare                       ready to be assigned
//   <session>.<pid>.<started>.shell  a tenant's, with the holder's process
//   <session>.task                   no socket: the id of the task that opened the shell

import { mkdirSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
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

const sessionIn = (name: string) => name.split(".", 1)[0] ?? name;
/** By the name of a shell's socket, or by its session. */
export const taskNoteName = (name: string) => `${sessionIn(name)}.task`;

/** The session that this task opened a shell for. */
export function sessionOfTask(stateDir: string, taskId: string): string | undefined {
  const directory = directoryOf(stateDir);
  const name = namesIn(directory).find((one) => one.endsWith(".task") && textIn(`${directory}/${one}`) === taskId);
  return name && sessionIn(name);
}

/** Removes the notes of shells that no longer exist. */
export function removeOldTaskNotes(stateDir: string): void {
  const directory = directoryOf(stateDir);
  const names = namesIn(directory);
  const shells = new Set(names.filter((name) => name.endsWith(".shell")).map(sessionIn));
  for (const name of names)
    if (name.endsWith(".task") && !shells.has(sessionIn(name))) rmSync(`${directory}/${name}`, { force: true });
}

function textIn(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
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
