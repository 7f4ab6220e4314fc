// @ts-check
// The process that holds one shell: it starts idle, is ordered once what to become, and from then on is the
// tenant's. It keeps the PTY and its newest output while agents come and go, and ends with the shell, or
// when no agent came for too long. Arguments: its id, after how many seconds that is, and `private` when its mounts
// are its own. It listens in its working directory, which only the agent's user may enter; the socket's name says to
// others that it is ready.
//
// Idle it takes 48 MB of which 9 are its own, and 45 ms to start; the shell's scrollback comes on top.

import { accessSync, constants, readFileSync, renameSync, statSync } from "node:fs";
import { createServer } from "node:net";
import { becomeUser } from "./become-user.mjs";
import { confine } from "./confine.mjs";
import { dropInherited } from "./drop-inherited.mjs";
import { hangUp } from "./hang-up.mjs";
import { createInputCounts } from "./input-counts.mjs";
import { createReader, sendBytes, sendControl } from "./messages.mjs";
import { openPty } from "./pty.mjs";
import { createScrollback } from "./scrollback.mjs";
import { openSerial } from "./serial.mjs";

/** @typedef {import("./messages.mjs").Control} Control */
/**
 * What to become. `limits` are the contract's, passed because nothing but these few files is loaded here.
 * @typedef {{
 *   user: { name: string, uid: number, gid: number, home: string, shell: string },
 *   env: Record<string, string>, size: { cols: number, rows: number }, orphanMs: number,
 *   limits: { window: number, scrollback: number, input: number }, notes: unknown,
 *   confinement: import("./confine.mjs").Confinement, console?: import("./serial.mjs").SerialConsole,
 * }} Orders With a console it stays root, to whom the VM's files belong, and runs no program.
 */
/** @typedef {{ number: number, base: number, sent: number, acknowledged: number, pauseReported: boolean }} Attachment */

/** A spare without a shell saves only the time to start another: a restarted agent is back by then. */
const SPARE_MS = 15_000;
/** As login(1) has it; a shell's start-up files may set another. The agent's own is nobody's business. */
const USUAL_UMASK = 0o022;
/** From one read on that brings so much. */
const POURING_BYTES = 1024;
const GATHERED_BYTES = 64 * 1024;
/** Turns of the event loop, some microseconds each. */
const QUIET_TURNS = 4;
/** To an agent that does not read: more is not put into its socket. */
const MOST_QUEUED = 1024 * 1024;
const vmEnded = {
  type: "error",
  code: "terminal_vm_ended",
  message: "The VM has ended, and its console with it.",
};

const [id = "", orphanSeconds = "", mounts = ""] = process.argv.slice(2);
let orphanMs = Number(orphanSeconds) * 1000;
process.title = `holdfast-terminal ${id}`;
// A tenant may signal its holder, and this one would open Node's debugger to everybody on the host. The flag
// that Node.js has against it leaves the signal blocked, also in the shell.
process.on("SIGUSR1", () => {});

/** @type {import("node:net").Socket | undefined} */
let agent;
/** @type {ReturnType<typeof startShell> | undefined} */
let shell;
/** @type {NodeJS.Timeout | undefined} */
let orphaned;

const server = createServer((socket) => {
  // The newest wins: the one before is an agent that is gone and has not been noticed to be.
  agent?.destroy();
  agent = socket;
  clearTimeout(orphaned);
  const read = createReader({
    onBytes: (bytes) => shell?.input(bytes),
    onControl: (message) => obey(message),
    onBroken: () => socket.destroy(),
  });
  socket.on("data", read);
  socket.on("drain", () => shell?.drained());
  socket.on("error", () => {});
  socket.on("close", () => {
    if (agent === socket) abandoned();
  });
  tell(shell ? shell.description() : { type: "spare", pid: process.pid });
});

dropInherited();
// Root's from the moment it exists: nobody but the agent can ever connect.
process.umask(0o177);
server.listen(`${id}.starting`, () => {
  process.umask(USUAL_UMASK);
  try {
    renameSync(`${id}.starting`, `${id}.spare`);
  } catch {
    process.exit(1); // The agent removed its directory: nobody wants this one.
  }
  process.chdir("/");
  abandoned();
});
server.on("error", () => process.exit(1));

function abandoned() {
  agent = undefined;
  shell?.detach();
  clearTimeout(orphaned);
  const patienceMs = shell ? orphanMs : Math.min(orphanMs, SPARE_MS);
  orphaned = setTimeout(() => {
    if (shell) shell.close(() => process.exit(0));
    else process.exit(0);
  }, patienceMs);
}

/** @param {Control} message */
function tell(message) {
  if (agent) sendControl(agent, message);
}

/** @param {Control} message */
function obey(message) {
  switch (message.type) {
    case "become":
      return become(/** @type {Orders & Control} */ (message));
    case "describe":
      return tell(shell ? shell.description() : { type: "spare", pid: process.pid });
    case "attach":
      return shell?.attach(/** @type {any} */ (message));
    case "detach":
      return shell?.detach();
    case "resize":
      return shell?.resize(/** @type {any} */ (message));
    case "ack":
      return shell?.acknowledge(Number(message["bytes"]));
    case "close":
      if (shell) return shell.close(() => {});
      process.exit(0);
      break;
    case "done":
      process.exit(0);
  }
}

/** @param {Orders} orders */
function become(orders) {
  if (shell) return;
  orphanMs = orders.orphanMs;
  try {
    shell = startShell(orders);
    tell(shell.description());
  } catch (error) {
    // Half of a user is nobody to go on as.
    tell({ type: "failed", message: /** @type {Error} */ (error).message });
    agent?.end(() => process.exit(1));
  }
}

/** @param {Orders} orders */
function startShell({ user, env, size, limits, notes, confinement, console: serial }) {
  process.title = `holdfast-terminal ${env["HOLDFAST_SESSION_ID"]}`;
  const confined = confine(confinement, { ownMounts: mounts === "private" });
  const file = serial ? "" : enterAccount(user);
  const output = createScrollback(limits.scrollback);
  /** @type {Attachment | undefined} */
  let attachment;
  /** Output up to here was sent to somebody before. */
  let shown = 0;
  let attachments = 0;
  let present = size;
  /** @type {import("./pty.mjs").Exit | undefined} */
  let ended;
  /** @type {(() => void)[]} */
  const whenEnded = [];

  const unacknowledged = (/** @type {Attachment} */ to) => to.sent - to.base - to.acknowledged;
  const mayReadOn = () =>
    !attachment ||
    (output.end - attachment.base - attachment.acknowledged < limits.window &&
      (agent?.writableLength ?? 0) < MOST_QUEUED);

  const flush = (/** @type {number} */ window) => {
    if (!attachment || !agent) return;
    attachment.sent = Math.max(attachment.sent, output.start);
    for (const piece of output.from(attachment.sent)) {
      const allowed = piece.subarray(0, Math.max(0, window - unacknowledged(attachment)));
      if (allowed.length === 0) break;
      sendBytes(agent, allowed);
      attachment.sent += allowed.length;
    }
    shown = Math.max(shown, attachment.sent);
    const waiting = unacknowledged(attachment);
    if (waiting < limits.window || attachment.pauseReported) return;
    attachment.pauseReported = true;
    tell({ type: "paused", unacknowledged: waiting });
  };
  const finish = (/** @type {import("./pty.mjs").Exit} */ exit) => {
    ended = exit;
    flush(Number.POSITIVE_INFINITY);
    counts.acknowledgeNow();
    tell({ type: "exit", ...exit });
    for (const done of whenEnded) done();
  };
  const gathering = createGathering({
    end: () => output.end,
    waiting: () => (attachment ? output.end - attachment.sent : 0),
    flush: () => flush(limits.window),
  });

  const reading = {
    room: () => output.room(),
    onOutput: (/** @type {number} */ count) => {
      output.filled(count);
      pty.tryUnread();
      gathering.pass(count);
      return mayReadOn();
    },
    onWritten: () => counts.progressed(),
  };
  const openShell = () => {
    const program = { file, args: ["-l"], env: { ...env, SHELL: file }, cwd: user.home, ...size };
    const shell = openPty({ ...program, ...reading, onEnd: finish });
    return { ...shell, close: () => hangUp(shell.pid, () => ended !== undefined) };
  };
  const onVmEnd = (/** @type {"vm_ended" | "closed"} */ why) => {
    flush(Number.POSITIVE_INFINITY);
    if (why === "vm_ended") tell(vmEnded);
    finish({ code: 0, signal: null });
  };
  const pty = serial ? openSerial({ ...serial, ...reading, onEnd: onVmEnd }) : openShell();
  const counts = createInputCounts({
    unwritten: pty.unread,
    every: limits.window / 4,
    acknowledge: (bytes) => tell({ type: "ack", bytes }),
  });

  return {
    description: () => ({
      ...{ type: "shell", pid: pty.pid, offset: output.start, end: output.end, orphan_ms: orphanMs },
      ...{ exit: ended ?? null, notes, ...confined },
    }),

    /** @param {Buffer} bytes */
    input(bytes) {
      const waiting = pty.unread() + bytes.length;
      counts.taken(bytes.length);
      if (waiting <= limits.input) return pty.write(bytes);
      pty.dropUnread();
      tell({
        type: "error",
        code: "terminal_input_overflow",
        message: `The program in the terminal does not read its input: ${waiting} bytes that waited for it were discarded.`,
      });
    },

    /** @param {{ attachment: number, from: number | null, writer?: string, cols: number, rows: number }} to */
    attach({ attachment: number, from, writer, cols, rows }) {
      const offset = output.replayFrom(from);
      const replay = Math.max(0, Math.min(shown, output.end) - offset);
      attachment = { number, base: offset, sent: offset, acknowledged: 0, pauseReported: false };
      const input = writer === undefined ? counts.attachUncounted() : counts.attach(writer);
      // An `input` that is undefined does not travel.
      tell({ type: "attached", attachment: number, offset, replay, input });
      counts.acknowledgeNow();
      const again = attachments++ > 0;
      const sameSize = cols === present.cols && rows === present.rows;
      // A program that draws the whole screen does so only when its size changes.
      if (again && sameSize) pty.resize(cols, rows + 1);
      this.resize({ cols, rows });
      flush(limits.window);
      if (ended) return tell({ type: "exit", ...ended });
      if (mayReadOn()) pty.resume();
    },

    detach() {
      attachment = undefined;
      if (!ended) pty.resume();
    },

    /** @param {{ cols: number, rows: number }} to */
    resize({ cols, rows }) {
      present = { cols, rows };
      pty.resize(cols, rows);
    },

    /** @param {number} bytes */
    acknowledge(bytes) {
      if (!attachment || !(bytes > attachment.acknowledged)) return;
      attachment.acknowledged = Math.min(bytes, attachment.sent - attachment.base);
      if (unacknowledged(attachment) === 0) attachment.pauseReported = false;
      flush(limits.window);
      if (!ended && mayReadOn()) pty.resume();
    },

    drained() {
      if (!ended && mayReadOn()) pty.resume();
    },

    /** @param {() => void} done */
    close(done) {
      if (ended) return done();
      whenEnded.push(done);
      if (whenEnded.length > 1) return;
      pty.close();
    },
  };
}

/**
 * What somebody typed is shown at once. A program that pours out text is read 4 KB at a time, and a message for
 * each would cost everybody on the way more than its bytes: these are gathered while more comes.
 * @param {{ end: () => number, waiting: () => number, flush: () => void }} output
 */
function createGathering({ end, waiting, flush }) {
  let gathering = false;
  const gather = (/** @type {number} */ before, /** @type {number} */ quietTurns) => {
    setImmediate(() => {
      const quiet = end() > before ? 0 : quietTurns + 1;
      if (quiet < QUIET_TURNS && waiting() > 0 && waiting() < GATHERED_BYTES) return gather(end(), quiet);
      gathering = false;
      flush();
    });
  };
  return {
    /** @param {number} count */
    pass(count) {
      if (gathering) return;
      if (count < POURING_BYTES) return flush();
      gathering = true;
      gather(end(), 0);
    },
  };
}

/** Returns the shell. @param {Orders["user"]} user */
function enterAccount(user) {
  if (process.getuid?.() !== user.uid) becomeUser(user);
  enterHome(user);
  return usableShell(user.shell || "/bin/sh");
}

/** As the user: root may enter what the user may not, and on some file systems the other way round. @param {Orders["user"]} user */
function enterHome({ name, home, uid }) {
  try {
    process.chdir(home);
  } catch (error) {
    throw new Error(`The home ${home} of ${name} cannot be entered: ${codeOf(error)}.`);
  }
  if (statSync(".").uid !== uid) throw new Error(`The home ${home} does not belong to ${name}.`);
}

/** @param {string} file */
function usableShell(file) {
  try {
    accessSync(file, constants.X_OK);
    if (!statSync(file).isFile()) throw new Error("it is not a file");
  } catch (error) {
    throw new Error(`The shell ${file} cannot be run: ${codeOf(error)}.`);
  }
  const listed = loginShells();
  if (listed && !listed.includes(file))
    throw new Error(`The shell ${file} is not meant for people: it does not stand in /etc/shells.`);
  return file;
}

/** Undefined where the host keeps no list. @returns {string[] | undefined} */
function loginShells() {
  try {
    return readFileSync("/etc/shells", "utf8")
      .split("\n")
      .map((line) => line.trim());
  } catch {
    return undefined;
  }
}

/** @param {unknown} error */
function codeOf(error) {
  const { code, message } = /** @type {NodeJS.ErrnoException} */ (error);
  return code ?? message;
}
