// @ts-check
// One PTY with a program in it, over the native part of node-pty alone. Output is read into the room that
// the caller gives. Input is written straight to the descriptor: libuv takes a PTY's master for a file that
// blocks and would spin on it, also while the program waits for its own output to be read.

import { writeSync } from "node:fs";
import { createRequire } from "node:module";
import { constants as system } from "node:os";
import { ReadStream } from "node:tty";

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
const RETRY_MS = { first: 1, most: 100 };

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
  /** @type {Buffer[]} */
  let unread = [];
  let unreadBytes = 0;
  /** Nobody can read any more: what is unread stays so. */
  let gone = false;
  let retryMs = RETRY_MS.first;
  /** @type {NodeJS.Timeout | undefined} */
  let retry;

  const end = () => {
    if (!exit || !drained) return;
    clearTimeout(retry);
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

  const flush = () => {
    clearTimeout(retry);
    retry = undefined;
    const before = unreadBytes;
    flushSome();
    if (unreadBytes < before) onWritten();
  };
  const flushSome = () => {
    while (unread.length > 0 && !drained) {
      const [next = Buffer.alloc(0)] = unread;
      const written = writeSome(fd, next);
      if (written === "gone") {
        gone = true;
        unread = [];
        return;
      }
      if (written > 0) retryMs = RETRY_MS.first;
      unreadBytes -= written;
      if (written === next.length) unread.shift();
      else {
        unread[0] = next.subarray(written);
        retry = setTimeout(flush, retryMs);
        retryMs = Math.min(RETRY_MS.most, retryMs * 2);
        return;
      }
    }
  };

  return {
    pid,
    /** What was not written to it yet, or never will be. */
    unread: () => unreadBytes,
    /** @param {Buffer} bytes */
    write(bytes) {
      unreadBytes += bytes.length;
      if (drained || gone) return;
      unread.push(bytes);
      if (retry === undefined) flush();
    },
    dropUnread() {
      unread = [];
      unreadBytes = 0;
    },
    /** A program that writes has often read before. */
    tryUnread() {
      if (retry !== undefined) flush();
    },
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

/** @param {number} fd @param {Buffer} bytes @returns {number | "gone"} */
function writeSome(fd, bytes) {
  try {
    return writeSync(fd, bytes);
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code === "EAGAIN" ? 0 : "gone";
  }
}

/** @param {number} signal */
function nameOf(signal) {
  const [name] = Object.entries(system.signals).find(([, number]) => number === signal) ?? [];
  return name ?? `signal ${signal}`;
}
