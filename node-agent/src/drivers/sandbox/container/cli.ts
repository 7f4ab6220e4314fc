// The command-line program of an engine. Its JSON is all that is needed, so no library talks to its API.

import { type ChildProcessWithoutNullStreams, execFile, spawn } from "node:child_process";
import { userInfo } from "node:os";
import type { Environment } from "@holdfast/kit/settings";
import type { SandboxProblem } from "../driver.ts";
import type { Engine } from "./engine.ts";

/** `missing`: there is no such program. */
export type Answer = { code: number; stdout: string; stderr: string; missing: boolean };

export type Cli = {
  ask(args: readonly string[]): Promise<Answer>;
  /**
   * `mark`: in the environment of the program, by which a later agent finds it. `cwd`: podman's monitor leaves a file where it
   * runs if memory was exceeded.
   */
  start(
    args: readonly string[],
    place: { mark: Record<string, string>; cwd: string },
  ): ChildProcessWithoutNullStreams;
};

/** What leads to the engine that the owner of the host uses. Nothing else of the agent's environment is passed on. */
const passedOn =
  /^(PATH|HOME|TMPDIR|XDG_\w+|DOCKER_(HOST|CONTEXT|CONFIG|CERT_PATH|TLS_VERIFY|API_VERSION)|CONTAINERS?_\w+)$/;
const PATIENCE_MS = 60_000;
const MOST_BYTES = 4 * 1024 * 1024;

export function openCli([program, ...options]: readonly [string, ...string[]], environment: Environment): Cli {
  const env = Object.fromEntries(Object.entries(environment).filter(([name]) => passedOn.test(name)));
  return {
    ask: (args) =>
      new Promise((resolve) => {
        const limits = { timeout: PATIENCE_MS, maxBuffer: MOST_BYTES };
        execFile(program, [...options, ...args], { env, ...limits }, (error, stdout, stderr) => {
          const code = error ? (typeof error.code === "number" ? error.code : 1) : 0;
          const missing = error?.code === "ENOENT";
          resolve({ code, stdout, stderr: stderr || (error?.message ?? ""), missing });
        });
      }),
    // In a session of its own: Ctrl-C at the agent does not end it.
    start: (args, { mark, cwd }) =>
      spawn(program, [...options, ...args], { cwd, env: { ...env, ...mark }, detached: true }),
  };
}

export class EngineProblem extends Error {
  readonly problem;
  constructor(problem: { what: string; remedy: string }) {
    super(sentence(problem));
    this.problem = problem;
  }
}

export function explain(engine: Engine, said: string, image: string): SandboxProblem {
  const { name } = engine;
  if (/ENOENT/.test(said)) {
    return {
      what: `${name} is not installed on this host, or not on the PATH of the agent`,
      remedy: `install it (Debian: apt-get install ${name === "docker" ? "docker.io" : "podman catatonit"}), or choose another backend`,
    };
  }
  const known = engine.problems.find(({ pattern }) => pattern.test(said));
  if (known) return known.explain({ image, user: userName() });
  const text = said.replaceAll(/\s+/g, " ").trim().slice(0, 500);
  return { what: `${name} failed: ${text || "it gave no reason"}`, remedy: `see what \`${name} info\` reports` };
}

function sentence({ what, remedy }: SandboxProblem): string {
  return `${what}. The owner of the host can change that: ${remedy}`;
}

/** A user without an entry in the host's list has a number only. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.());
  }
}
