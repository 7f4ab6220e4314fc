// Scripts on the host itself, as the user of the agent: no isolation, so only where the owner of the host chose it. Each has a
// directory and a session of its own. Script and secret travel in memory: neither is in the arguments, and neither on a disk.

import { spawn } from "node:child_process";
import { chmodSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { enforcedLimits } from "@holdfast/contracts/execution/limits";
import { isErrno } from "@holdfast/kit/files";
import { identify } from "@holdfast/kit/processes";
import {
  isRunId,
  type LimitCheck,
  MINIMAL_ENVIRONMENT,
  type SandboxCheck,
  type SandboxDriver,
  type SandboxEnd,
  type SandboxOptions,
  type SandboxOrder,
  SECRET_VARIABLE,
} from "./driver.ts";
import { withoutInherited } from "./inherited.ts";
import { endPipes } from "./last-output.ts";
import { followOutput } from "./output.ts";
import { killOnce, killTree, type Tree } from "./process-tree.ts";

const RUN_VARIABLE = "HOLDFAST_EXECUTION_RUN";
/**
 * Reads the script from a descriptor and closes that first. An argument would be public, and limited to 128 KiB. A script
 * without its end is of an agent that died while it sent it, and does not run.
 */
const PROGRAM = `set -- "$(command -p cat <&3)"
case $1 in *"#$${RUN_VARIABLE}") ;; *) exit 125 ;; esac
eval "exec 3<&-; set --
\${1%?"#$${RUN_VARIABLE}"}"`;
/** For output that a process still holds which could not be found. */
const DRAIN_MS = 2000;

export function hostDriver({ root }: Pick<SandboxOptions, "root">): SandboxDriver {
  return {
    name: "host",
    provides: { isolation: false, images: false },
    check: async () => ({ backend: "host", limits: unlimited() }),
    run(order) {
      const { id } = order;
      const directory = join(root, id);
      const tree: Tree = { mark: `${RUN_VARIABLE}=${id}` };
      const state = { killed: false, exited: false };
      const work = async (): Promise<SandboxEnd> => {
        try {
          mkdirSync(directory, { recursive: true, mode: 0o700 });
          const exitCode = await runScript(order, { directory, tree, state });
          return { exitCode: state.killed ? null : exitCode, hit: [] };
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
      const left = namesIn(root).filter(isRunId);
      for (const id of left) {
        await killTree({ mark: `${RUN_VARIABLE}=${id}` });
        removeDirectory(join(root, id));
      }
      return left.length;
    },
  };
}

function unlimited(): SandboxCheck["limits"] {
  const none: LimitCheck = {
    enforced: false,
    what: "scripts on the host itself have no limits but time and output",
    remedy: "choose the backend docker, podman or bubblewrap",
  };
  return Object.fromEntries(enforcedLimits.map((limit) => [limit, none])) as SandboxCheck["limits"];
}

type Place = { directory: string; tree: Tree; state: { exited: boolean } };

async function runScript(order: SandboxOrder, { directory, tree, state }: Place): Promise<number | null> {
  const { shell, script, env, secret } = order;
  const [, id = ""] = tree.mark.split("=");
  const child = spawn(shell, ["-c", PROGRAM], {
    cwd: directory,
    env: {
      ...{ ...MINIMAL_ENVIRONMENT, HOME: directory, TMPDIR: directory },
      ...env,
      ...(secret === undefined ? {} : { [SECRET_VARIABLE]: secret }),
      [RUN_VARIABLE]: id,
    },
    // A session and a group of its own: it survives Ctrl-C at the agent, and ends as a whole.
    detached: true,
    stdio: withoutInherited(["ignore", "pipe", "pipe", "pipe"]),
  });
  tree.leader = child.pid === undefined ? undefined : identify(child.pid);
  const [, stdout, stderr, input] = child.stdio;
  followOutput(child, order.onOutput);
  // A script that ends before it was read.
  input?.on("error", () => undefined);
  if (input && "end" in input) input.end(`${script}\n#${id}`);
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
      input?.destroy();
      endPipes([stdout, stderr].filter((stream) => stream instanceof Readable));
    };
    child.once("close", () => void Promise.resolve(swept).then(() => resolve(exit)));
  });
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
