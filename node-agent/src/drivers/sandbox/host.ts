// Scripts on the host itself, as the user of the agent: no isolation, so only where the owner of the host chose it. Each has a
// directory and a session of its own. Script and secret travel in memory: neither is in the arguments, and neither on a disk.

import { spawn } from "node:child_process";
import { chmodSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { StringDecoder } from "node:string_decoder";
import { isErrno } from "@holdfast/kit/files";
import { identify } from "@holdfast/kit/processes";
import { uuidv7 } from "@holdfast/kit/uuid";
import {
  type OutputStream,
  type SandboxDriver,
  type SandboxEnd,
  type SandboxOrder,
  SECRET_VARIABLE,
} from "./driver.ts";
import { killOnce, killTree, type Tree } from "./process-tree.ts";

const RUN_VARIABLE = "HOLDFAST_EXECUTION_RUN";
const runName = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const minimal = { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", LANG: "C.UTF-8" };
/** Reads the script from a descriptor and closes that first. An argument would be public, and limited to 128 KiB. */
const PROGRAM = 'eval "exec 3<&-\n$(command -p cat <&3)"';
/** For output that a process still holds which could not be found. */
const DRAIN_MS = 2000;

/** `root`: of this agent alone. Whatever is in it when the agent starts was left behind. */
export function hostDriver({ root }: { root: string }): SandboxDriver {
  return {
    name: "host",
    run(order) {
      const id = uuidv7();
      const directory = join(root, id);
      const tree: Tree = { mark: `${RUN_VARIABLE}=${id}` };
      const state = { killed: false, exited: false };
      const work = async (): Promise<SandboxEnd> => {
        try {
          mkdirSync(directory, { recursive: true, mode: 0o700 });
          const exitCode = await runScript(order, { directory, tree, state });
          return { exitCode: state.killed ? null : exitCode };
        } finally {
          removeDirectory(directory);
        }
      };
      return {
        ended: work(),
        kill() {
          // Of a script that has ended by itself, the exit code is known.
          if (!state.exited) state.killed = true;
          killOnce(tree);
        },
      };
    },
    async recover() {
      const left = namesIn(root).filter((name) => runName.test(name));
      for (const id of left) {
        await killTree({ mark: `${RUN_VARIABLE}=${id}` });
        removeDirectory(join(root, id));
      }
      return left.length;
    },
  };
}

type Place = { directory: string; tree: Tree; state: { exited: boolean } };

async function runScript(order: SandboxOrder, { directory, tree, state }: Place): Promise<number | null> {
  const { shell, script, env, secret } = order;
  const [, id = ""] = tree.mark.split("=");
  const child = spawn(shell, ["-c", PROGRAM], {
    cwd: directory,
    env: {
      ...{ ...minimal, HOME: directory, TMPDIR: directory },
      ...env,
      ...(secret === undefined ? {} : { [SECRET_VARIABLE]: secret }),
      [RUN_VARIABLE]: id,
    },
    // A session and a group of its own: it survives Ctrl-C at the agent, and ends as a whole.
    detached: true,
    stdio: ["ignore", "pipe", "pipe", "pipe"],
  });
  tree.leader = child.pid === undefined ? undefined : identify(child.pid);
  const [, stdout, stderr, input] = child.stdio;
  follow(stdout, "stdout", order);
  follow(stderr, "stderr", order);
  // A script that ends before it was read.
  input?.on("error", () => undefined);
  if (input && "end" in input) input.end(script);
  return new Promise((resolve, reject) => {
    let exit: number | null = null;
    let swept: Promise<void> | undefined;
    child.once("error", (error) => reject(new Error(describe(error, shell))));
    child.once("exit", (code, signal) => {
      state.exited = true;
      exit = code ?? (signal ? 128 + constants.signals[signal] : null);
      // What the script has left running has no step any more that it would belong to.
      swept = killTree(tree).then(() => void setTimeout(cut, DRAIN_MS).unref());
    });
    const cut = () => {
      for (const stream of [stdout, stderr, input]) stream?.destroy();
    };
    child.once("close", () => void Promise.resolve(swept).then(() => resolve(exit)));
  });
}

function follow(from: NodeJS.EventEmitter | null | undefined, stream: OutputStream, order: SandboxOrder): void {
  const decoder = new StringDecoder("utf8");
  const pass = (text: string) => {
    if (text !== "") order.onOutput(stream, text);
  };
  from?.on("data", (bytes: Buffer) => pass(decoder.write(bytes)));
  from?.on("end", () => pass(decoder.end()));
}

function describe(error: Error, shell: string): string {
  if (isErrno(error, "ENOENT")) return `this host has no ${shell}`;
  return `the script could not be started: ${error.message}`;
}

/** A directory that a script made inaccessible to its own user is opened first. */
function removeDirectory(directory: string): void {
  const remove = () => rmSync(directory, { recursive: true, force: true, maxRetries: 3 });
  try {
    remove();
  } catch {
    try {
      openUp(directory);
      remove();
    } catch {
      // Left for the next start of the agent.
    }
  }
}

function openUp(directory: string): void {
  chmodSync(directory, 0o700);
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    if (entry.isDirectory()) openUp(join(directory, entry.name));
  }
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    if (isErrno(error, "ENOENT")) return [];
    throw error;
  }
}
