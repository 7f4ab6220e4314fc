// @ts-check
// The serial console of a VM, used as a PTY is: output is read from the VM's serial log, input goes into the pipe that QEMU reads.
// So any number of consoles may be open, the log is complete whether or not somebody reads, and a console that does not read
// holds up nobody. It has no size: the guest cannot be informed of it.

import { closeSync, constants, openSync, readFileSync, watch } from "node:fs";
import { createInputQueue } from "./input-queue.mjs";
import { openSerialLog } from "./serial-log.mjs";

/** @typedef {{ directory: string, pid: number, startTicks: string }} SerialConsole The VM's directory, and its process. */

const LOG = "serial.log";
const INPUT = "serial.in";
/** Of the log, for whoever opens a console. */
const BACKLOG = 64 * 1024;
/** Then others get their turn. */
const AT_ONCE = 256 * 1024;
/** QEMU is not a child of this process, and where files cannot be watched, the log is read this often. */
const LOOK_MS = 500;

const gap = Buffer.from(
  "\r\n[Output is missing here: the serial log is limited, and older output was dropped.]\r\n",
);

/**
 * Throws when the VM has no console, or runs no more.
 * @param {SerialConsole & {
 *   room: () => Buffer, onOutput: (count: number) => boolean, onWritten?: () => void, onEnd: (why: "vm_ended" | "closed") => void,
 * }} options `onOutput` returns whether to read on.
 */
export function openSerial({ directory, pid, startTicks, room, onOutput, onWritten = () => {}, onEnd }) {
  const isRunning = () => startTicksOf(pid) === startTicks;
  const fd = openInput(`${directory}/${INPUT}`);
  if (!isRunning()) {
    closeSync(fd);
    throw new Error("The VM has ended.");
  }
  const log = openSerialLog(`${directory}/${LOG}`, { most: BACKLOG });
  let paused = false;
  let ended = false;
  let waiting = false;
  /** To be passed on before more is read. @type {Buffer | undefined} */
  let pending;
  const input = createInputQueue({ fd, isOver: () => ended, onWritten });

  const take = () => {
    const buffer = room();
    if (pending) {
      const count = pending.copy(buffer);
      pending = count < pending.length ? pending.subarray(count) : undefined;
      return count;
    }
    const count = log.read(buffer);
    if (!log.takeSkipped()) return count;
    // What was read follows the note.
    const read = Buffer.from(buffer.subarray(0, count));
    pending = count > 0 ? read : undefined;
    return gap.copy(buffer);
  };
  const readOn = () => {
    waiting = false;
    for (let taken = 0; !paused && !ended; ) {
      const count = take();
      if (count === 0) return;
      if (!onOutput(count)) paused = true;
      taken += count;
      if (taken >= AT_ONCE) return soon();
    }
  };
  const soon = () => {
    if (waiting || ended) return;
    waiting = true;
    setImmediate(readOn);
  };
  const end = (/** @type {"vm_ended" | "closed"} */ why) => {
    if (ended) return;
    // Its last words, although nobody may have acknowledged those before.
    for (let taken = 0, count = -1; why === "vm_ended" && count !== 0 && taken < AT_ONCE; taken += count) {
      count = take();
      if (count > 0) onOutput(count);
    }
    ended = true;
    clearInterval(looking);
    watcher?.close();
    input.stop();
    log.close();
    closeSync(fd);
    onEnd(why);
  };
  const looking = setInterval(() => {
    if (isRunning()) soon();
    else end("vm_ended");
  }, LOOK_MS);
  const watcher = watchDirectory(directory, soon);
  soon();

  return {
    ...input,
    pid,
    pause: () => {
      paused = true;
    },
    resume() {
      paused = false;
      soon();
    },
    resize() {},
    close: () => end("closed"),
  };
}

/** @param {string} path */
function openInput(path) {
  try {
    return openSync(path, constants.O_WRONLY | constants.O_NONBLOCK);
  } catch (error) {
    const { code } = /** @type {NodeJS.ErrnoException} */ (error);
    if (code === "ENXIO") throw new Error("The VM has ended.");
    throw new Error(`The VM has no serial input (${code}): it was launched by an older agent.`);
  }
}

/** Others may use all inotify watches of the host. @param {string} directory @param {() => void} onChange */
function watchDirectory(directory, onChange) {
  try {
    return watch(directory, onChange).on("error", () => {});
  } catch {
    return undefined;
  }
}

/** Undefined: there is no such process. @param {number} pid */
function startTicksOf(pid) {
  try {
    // The name of a program may contain blanks and brackets.
    const [state, ...rest] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ") ?? [];
    return state === "Z" ? undefined : rest[18];
  } catch {
    return undefined;
  }
}
