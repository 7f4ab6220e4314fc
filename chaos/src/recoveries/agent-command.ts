// `holdfast agent …` on a host, as its operator types it, with what it prints and how it ends.

import { execFile } from "node:child_process";
import { holdfast } from "../lab/command.ts";
import type { LabNode } from "../lab/node.ts";

export type Refused = { code: string; message: string; next_step?: string };
export type Ended = { code: number; stdout: string; stderr: string; refused: Refused | undefined };

/** `clock`: of the clock that the host shares, if it has another one than this machine. */
export function agentCommand(
  node: Pick<LabNode, "host" | "stateDir">,
  args: readonly string[],
  clock: Record<string, string> = {},
): Promise<Ended> {
  const [program = "", ...words] = [...node.host.enter, process.execPath, holdfast, "agent", ...args, "--json"];
  const env = {
    PATH: process.env["PATH"] ?? "",
    HOME: "/root",
    HOLDFAST_AGENT_STATE_DIR: node.stateDir,
    ...clock,
  };
  return new Promise((resolve) => {
    execFile(program, words, { cwd: "/", env }, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr, refused: refusalIn(stderr) }),
    );
  });
}

function refusalIn(stderr: string): Refused | undefined {
  try {
    return (JSON.parse(stderr) as { error: Refused }).error;
  } catch {
    return undefined;
  }
}
