// An installation with a user on its own machine, and people at terminals of that user's: real processes,
// real mutual TLS, real PTYs. Needs root, which alone can make users.

import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { fileURLToPath } from "node:url";
import type { Allocation } from "@holdfast/contracts/endpoints/allocations";
import { listTerminals, type TerminalSession } from "@holdfast/contracts/endpoints/terminals";
import { onTestFinished } from "vitest";
import { type Environment, type Outcome, until } from "../../../testkit/processes/holdfast.ts";
import { type FirstNode, openFirstNode } from "./first-node.ts";
import { openTty, type Tty } from "./tty.ts";

export type Shells = FirstNode & {
  allocation: Allocation;
  /** `holdfast terminal` at a terminal; `through` is run with it as its arguments. */
  atTty(args?: string[], through?: string[]): Tty;
  /** The same, once the shell answers. */
  atShell(args?: string[]): Promise<Tty>;
  /** `holdfast terminal` with pipes, to its end. */
  piped(input: string, args?: string[]): Promise<Outcome & { bytes: Buffer }>;
  /** What `holdfast` commands are given here. */
  env: Environment;
  terminals(state?: TerminalSession["state"]): Promise<TerminalSession[]>;
};

const command = fileURLToPath(new URL("../../bin/holdfast.mjs", import.meta.url));

export async function openShells(env: Environment = {}): Promise<Shells> {
  // As long as it may be: how soon a busy machine has a shell ready is not what is looked at.
  const first = await openFirstNode({ HOLDFAST_TERMINAL_OPEN_SECONDS: "29", ...env });
  const username = `hft-${randomBytes(5).toString("hex")}`;
  const allocation = await first.json<Allocation>([
    ...["allocation", "create", "--node", first.node.name, "--user", username],
  ]);
  const own: Environment = {
    PATH: process.env["PATH"] ?? "",
    HOLDFAST_DATA_DIR: first.installation.dataDir,
    HOME: first.scratch,
    TERM: "xterm-256color",
  };
  const target = `${username}@${first.node.name}`;
  const atTty = (args: string[] = [], through: string[] = []) => {
    const [file = "", ...rest] = [...through, process.execPath, command, "terminal", target, ...args];
    return openTty({ file, args: rest, env: own });
  };
  const { items } = await first.json<{ items: { slug: string }[] }>(["org", "list"]);
  const org = String(items[0]?.slug);
  const shells: Shells = {
    ...first,
    allocation,
    env: own,
    atTty,
    async atShell(args) {
      const tty = atTty(args);
      await untilItAnswers(tty);
      return tty;
    },
    piped: (input, args = []) => piped([command, "terminal", target, ...args], own, input),
    async terminals(state) {
      const query = { allocation_id: allocation.id, ...(state && { state }) };
      return (await first.operator()(listTerminals, { query })).items;
    },
    async cleanUp() {
      // The user with all its processes; also when a test has made it anew, or another organization.
      await first.run(["allocation", "release", shells.allocation.id, "--org", org]);
      await first.cleanUp();
    },
  };
  return shells;
}

/** The answer differs from what is typed, which is shown as well. */
export async function untilItAnswers(tty: Tty): Promise<void> {
  const mark = randomBytes(6).toString("hex");
  await tty.sees("$ ");
  tty.type(`echo ${mark.slice(0, 6)}''${mark.slice(6)}\r`);
  await tty.sees(mark);
}

/** What one command printed. */
export async function ask(tty: Tty, line: string): Promise<string> {
  const mark = randomBytes(6).toString("hex");
  tty.clear();
  tty.type(`echo {$(${line})}${mark.slice(0, 6)}''${mark.slice(6)}\r`);
  await tty.sees(mark);
  const [, answer = ""] = new RegExp(`\\{([^{}]*)\\}${mark}`).exec(tty.shown()) ?? [];
  return answer;
}

function piped(args: string[], env: Environment, input: string): Promise<Outcome & { bytes: Buffer }> {
  const child = spawn(process.execPath, args, { env, cwd: "/", stdio: "pipe" });
  const out: Buffer[] = [];
  let stderr = "";
  child.stdout.on("data", (chunk: Buffer) => out.push(chunk));
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  child.stdin.on("error", () => undefined);
  child.stdin.end(input);
  return new Promise((resolve) =>
    child.once("close", (code, signal) => {
      const bytes = Buffer.concat(out);
      resolve({ code, signal, stdout: bytes.toString("utf8"), stderr, bytes });
    }),
  );
}

/** Kills one process of the installation; answers when its successor runs. */
export async function killChild({ installation }: FirstNode, name: string): Promise<void> {
  const before = installation.upFile().children[name]?.pid ?? 0;
  process.kill(before, "SIGKILL");
  await until(() => ![before, undefined].includes(installation.upFile().children[name]?.pid));
}

/** Stops one process of the installation without ending it; returns what lets it go on, at the latest the test's end. */
export function hangChild({ installation }: FirstNode, name: string): () => void {
  const pid = installation.upFile().children[name]?.pid ?? 0;
  process.kill(pid, "SIGSTOP");
  let hangs = true;
  const goOn = () => {
    if (hangs) process.kill(pid, "SIGCONT");
    hangs = false;
  };
  onTestFinished(goOn);
  return goOn;
}
