// The person's own terminal, or the pipes of a script: keys as they are typed, the size, and its state as
// it was found when the command ends, however it ends.

import { spawnSync } from "node:child_process";
import type { Size } from "@holdfast/contracts/terminal/frames";

export type LocalTerminal = {
  /** Whether a person types. */
  interactive: boolean;
  size(): Size;
  onInput(listener: (bytes: Buffer) => void): void;
  onInputEnd(listener: () => void): void;
  onResize(listener: () => void): void;
  /** Nobody reads the output any more. */
  onOutputClosed(listener: () => void): void;
  pauseInput(): void;
  resumeInput(): void;
  /** From now on keys come one by one, Ctrl-C among them. */
  begin(): void;
  write(bytes: Buffer, done: () => void): void;
  /** Whether a program draws on the whole of it. */
  isFullScreen(): boolean;
  /** A line for the person, whatever the shell is showing. */
  note(text: string): void;
  /** A last line that changes in place; undefined takes it away. Only a person who watches sees it. */
  status(text: string | undefined): void;
  /** `shellEnded`: what it showed last stays, because it has tidied up itself. */
  close(options: { shellEnded: boolean }): Promise<void>;
};

const usualSize: Size = { cols: 80, rows: 24 };
const enterAlternate = "\x1b[?1049h";
const leaveAlternate = "\x1b[?1049l";
/** Mouse reports, bracketed paste, hidden cursor, application keys, colours: what a program leaves on that is cut off. */
const usualModes = "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[?1l\x1b>\x1b[?25h\x1b[0m";

export function openLocalTerminal(): LocalTerminal {
  const { stdin, stdout, stderr } = process;
  const interactive = stdin.isTTY === true;
  let raw = false;
  let inAlternate = false;
  const setRaw = (on: boolean) => {
    if (!interactive || raw === on) return;
    raw = on;
    try {
      stdin.setRawMode(on);
      // Node.js leaves it on that a line feed also goes to the first column, which the shell's own terminal
      // has done where it is wanted; full-screen programs draw with bare line feeds.
      if (on) spawnSync("stty", ["-opost"], { stdio: ["inherit", "ignore", "ignore"] });
    } catch {
      // The terminal itself is gone.
    }
  };
  const restore = () => setRaw(false);
  // Also when something nobody expected ends the process.
  process.once("exit", restore);
  const screen = [stdout, stderr].find((stream) => stream.isTTY);
  stderr.on("error", () => undefined);

  return {
    interactive,
    size: () =>
      screen ? { cols: screen.columns || usualSize.cols, rows: screen.rows || usualSize.rows } : usualSize,
    onInput: (listener) => void stdin.on("data", listener),
    onInputEnd: (listener) => {
      stdin.once("end", listener);
      stdin.once("error", listener);
    },
    onResize(listener) {
      screen?.on("resize", listener);
      process.on("SIGCONT", () => {
        // Whoever stopped us may have changed the terminal meanwhile.
        if (raw) {
          setRaw(false);
          setRaw(true);
        }
        listener();
      });
    },
    onOutputClosed: (listener) => void stdout.on("error", listener),
    pauseInput: () => void stdin.pause(),
    resumeInput: () => void stdin.resume(),
    begin: () => setRaw(true),
    write(bytes, done) {
      if (stdout.isTTY) inAlternate = alternateAfter(bytes, inAlternate);
      stdout.write(bytes, done);
    },
    isFullScreen: () => inAlternate,
    note: (text) => void stderr.write(raw ? `\r\n${text.replaceAll("\n", "\r\n")}\r\n` : `${text}\n`),
    status(text) {
      if (!raw || !stderr.isTTY) return;
      stderr.write(`\r\x1b[2K${text?.slice(0, (stderr.columns || usualSize.cols) - 1) ?? ""}`);
    },
    async close({ shellEnded }) {
      stdin.pause();
      stdin.unref?.();
      if (stdout.isTTY && raw && !shellEnded) stdout.write((inAlternate ? leaveAlternate : "") + usualModes);
      restore();
      process.off("exit", restore);
      if (!stdout.destroyed) await new Promise<void>((resolve) => stdout.write("", () => resolve()));
    },
  };
}

/** A full-screen program draws on a second screen; a person who is cut off wants the first one back. */
function alternateAfter(bytes: Buffer, before: boolean): boolean {
  const entered = bytes.lastIndexOf(enterAlternate);
  const left = bytes.lastIndexOf(leaveAlternate);
  return entered === left ? before : entered > left;
}
