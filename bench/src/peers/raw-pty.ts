// The least there can be between a program and its shell: a PTY in the same process.

import { type IPtyForkOptions, spawn } from "@lydell/node-pty";
import type { PlainShell } from "../terminal/plain-shell.ts";
import { type Output, size, type TerminalSide } from "../terminal/terminal.ts";

export function rawPty(shell: PlainShell): TerminalSide {
  return {
    open: async (listener) => {
      let current = listener;
      const options: IPtyForkOptions = { ...size, cwd: shell.home, encoding: null };
      const pty = spawn(shell.path, [], options);
      const ended = new Promise<void>((resolve) => pty.onExit(() => resolve()));
      // Typed as text, but without an encoding it is bytes.
      pty.onData((output: Output) => current(output));
      return {
        write: (text) => pty.write(text),
        listen: (next) => {
          current = next;
        },
        close: () => {
          pty.kill();
          return ended;
        },
      };
    },
  };
}
