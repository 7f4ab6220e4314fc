// The system's own tools, found by absolute path in the directories only root can write, and never
// through a shell. A tool that says no is an answer, not an exception: callers know its exit codes.

import { execFile } from "node:child_process";
import { accessSync, constants } from "node:fs";

const directories = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/** Of every tool: nothing of the agent's own. */
export const toolEnvironment = { PATH: directories.join(":"), LC_ALL: "C" };

export type Answer = { code: number; stdout: string; stderr: string };

export function findTool(name: string): string | undefined {
  return directories.map((directory) => `${directory}/${name}`).find(isExecutable);
}

export class ToolMissing extends Error {
  override name = "ToolMissing";
}

export function runTool(
  name: string,
  args: readonly string[],
  options: { uid?: number; gid?: number; timeoutMs?: number; signal?: AbortSignal } = {},
): Promise<Answer> {
  const path = findTool(name);
  if (!path) throw new ToolMissing(`This host has no ${name} in ${directories.join(", ")}.`);
  const { timeoutMs = 60_000, ...rest } = options;
  return new Promise((resolve, reject) => {
    execFile(
      path,
      [...args],
      { ...rest, env: toolEnvironment, cwd: "/", timeout: timeoutMs },
      (error, stdout, stderr) => {
        if (!error) return resolve({ code: 0, stdout, stderr });
        if (typeof error.code === "number") return resolve({ code: error.code, stdout, stderr });
        reject(error);
      },
    );
  });
}

export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
