// @ts-check
// One PTY with a program in it, over the native part of node-pty alone. Output is read into the room that
// the caller gives. Input is written straight to the descriptor: libuv takes a PTY's master for a file that
// blocks and would spin on it, also while the program waits for its own output to be read.

import { createRequire } from "node:module";
import { constants as system } from "node:os";
import { ReadStream } from "node:tty";
import { createInputQueue } from "./input-queue.mjs";

/**
 * @typedef {{
 *   fork(file: string, args: string[], env: string[], cwd: string, cols: number, rows: number, uid: number,
 *     gid: number, utf8: boolean, helper: string, onExit: (code: number, signal: number) => void): { fd: number, pid: number },
 *   resize(fd: number, cols: number, rows: number): void,
 * }} NativePty
 */
/** @typedef {{ code: number | null, signal: string | null }} Exit */

const NOT_ANOTHER_USER = -1;
/** Output of a program that has ended comes within this time of what came before. */
const LAST_OUTPUT_MS = 200;
/** What others still write who hold the PTY is not waited for longer than so many times that. */
const MOST_LAST_WAITS = 25;

const require = createRequire(import.meta.url);
// It is a dependency of the wrapper, and need not be found from here.
const ofWrapper = createRequire(require.resolve("@lydell/node-pty/package.json"));
/** @type {NativePty} */
const native = ofWrapper(`@lydell/node-pty-linux-${process.arch}/pty.node`);

/**
 * Throws when the host gives no PTY.
 * @param {{
 *   file: string, args: string[], env: Record<string, string>, cwd: string, cols: number, rows: number,
 *   room: () => Buffer, onOutput: (count: number) => boolean, onWritten?: () => void, onEnd: (exit: Exit) => void,
 * }} options `onOutput` returns whether to read on; `onWritten` is called when the program's input has grown.
 */
export function openPty({ file, args, env, cwd, cols, rows, room, onOutput, onWritten = () => {}, onEnd }) {
  /** @type {Exit | undefined} */
  let exit;
  let drained = false;
  let received = 0;

  const end = () => {
    if (!exit || !drained) return;
    input.stop();
    onEnd(exit);
  };
  const noMoreOutput = () => {
    if (drained) return;
    drained = true;
    output.destroy();
    end();
  };
  const environment = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const onExit = (/** @type {number} */ code, /** @type {number} */ signal) => {
    exit = signal === 0 ? { code, signal: null } : { code: null, signal: nameOf(signal) };
    output.resume();
    awaitLastOutput(MOST_LAST_WAITS);
    end();
  };
  /** On a busy host this time may be over before anything could be read: at least once it is, and goes on while there is more. */
  const awaitLastOutput = (/** @type {number} */ waits) => {
    const before = received;
    const look = () => (received > before && waits > 1 ? awaitLastOutput(waits - 1) : noMoreOutput());
    setTimeout(() => setImmediate(look), LAST_OUTPUT_MS);
  };
  const { fd, pid } = fork(file, args, environment, cwd, cols, rows, onExit);
  const output = new ReadStream(fd, {
    onread: {
      buffer: room,
      callback: (/** @type {number} */ count) => {
        received += count;
        return onOutput(count) || exit !== undefined;
      },
    },
  });
  // EIO is how a PTY says that nobody has it open any more.
  output.on("error", noMoreOutput);
  output.on("end", noMoreOutput);
  output.resume();

  const input = createInputQueue({ fd, isOver: () => drained, onWritten });

  return {
    ...{ ...input, pid },
    pause: () => void output.pause(),
    resume: () => void output.resume(),
    /** @param {number} columns @param {number} lines */
    resize(columns, lines) {
      if (!drained) native.resize(fd, columns, lines);
    },
  };
}

/**
 * @param {string} file @param {string[]} args @param {string[]} env @param {string} cwd
 * @param {number} cols @param {number} rows @param {(code: number, signal: number) => void} onExit
 */
function fork(file, args, env, cwd, cols, rows, onExit) {
  try {
    return native.fork(file, args, env, cwd, cols, rows, NOT_ANOTHER_USER, NOT_ANOTHER_USER, true, "", onExit);
  } catch (error) {
    throw new Error(`This host gives no PTY: ${/** @type {Error} */ (error).message}`);
  }
}

/** @param {number} signal */
function nameOf(signal) {
  const [name] = Object.entries(system.signals).find(([, number]) => number === signal) ?? [];
  return name ?? `signal ${signal}`;
}
