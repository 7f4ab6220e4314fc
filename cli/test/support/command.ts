// Runs `holdfast` commands to their end as a person elsewhere would: with an empty home, and
// nothing of this machine's environment but what the test gives.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { atEnd } from "../../../testkit/lifetime/at-end.ts";

export const command = fileURLToPath(new URL("../../bin/holdfast.mjs", import.meta.url));

export type Ended = { code: number | null; stdout: string; stderr: string };

/** `uid`: as another user, which only root can try. An undefined variable is one that is not set. */
type More = { env?: Record<string, string | undefined>; input?: string; uid?: number };

export type Person = {
  home: string;
  /** Where the sign-in is kept. */
  credentials: string;
  holdfast(args: string[], more?: More): Promise<Ended>;
  /** With --json: expects success, and exactly one JSON value on stdout. */
  json<T = Record<string, unknown>>(args: string[], more?: { input?: string }): Promise<T>;
};

/** `env` goes to every command of this person. The home is removed after the file. */
export function aPerson(env: Record<string, string> = {}): Person {
  const home = mkdtempSync(join(tmpdir(), "holdfast-person-"));
  atEnd(() => rmSync(home, { recursive: true, force: true }));
  const base = {
    PATH: process.env["PATH"] ?? "",
    HOME: home,
    XDG_CONFIG_HOME: join(home, "config"),
    HOLDFAST_DATA_DIR: join(home, "no-installation"),
    ...env,
  };
  const holdfast: Person["holdfast"] = (args, more = {}) => run(args, { ...more, env: { ...base, ...more.env } });
  return {
    home,
    credentials: join(home, "config/holdfast/credentials.json"),
    holdfast,
    async json<T>(args: string[], more?: { input?: string }): Promise<T> {
      const { code, stdout, stderr } = await holdfast([...args, "--json"], more);
      if (code !== 0) throw new Error(`holdfast ${args.join(" ")} ended with ${code}:\n${stderr}`);
      if (stderr !== "" || stdout.trim().includes("\n"))
        throw new Error(`more than one JSON value:\n${stdout}${stderr}`);
      return JSON.parse(stdout) as T;
    },
  };
}

function run(args: string[], { env, input = "", uid }: More): Promise<Ended> {
  const child = spawn(process.execPath, [command, ...args], { env, uid, cwd: "/", stdio: "pipe" });
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  // A command that ends before it has read its input closes the pipe.
  child.stdin.on("error", () => undefined);
  child.stdin.end(input);
  return new Promise((resolve) => child.once("close", (code) => resolve({ code, stdout, stderr })));
}
