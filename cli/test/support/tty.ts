// A terminal as a person sits at it: a real PTY with a program in it, what is shown so far, and keys.

import { openPty } from "../../../node-agent/src/drivers/pty/pty.mjs";
import { until } from "../../../testkit/processes/holdfast.ts";

export type Tty = {
  pid: number;
  /** Everything so far, escape sequences included. */
  shown(): string;
  /** Forgets what was shown, so that `sees` means what comes now. */
  clear(): void;
  type(text: string): void;
  resize(cols: number, rows: number): void;
  sees(wanted: string | RegExp): Promise<void>;
  ended: Promise<{ code: number | null; signal: string | null }>;
};

const ROOM_BYTES = 64 * 1024;

export function openTty(options: { file: string; args: string[]; env: Record<string, string> }): Tty {
  const ended = Promise.withResolvers<{ code: number | null; signal: string | null }>();
  const room = Buffer.alloc(ROOM_BYTES);
  const decoder = new TextDecoder();
  let text = "";
  let over = false;
  const pty = openPty({
    ...options,
    cwd: "/",
    cols: 90,
    rows: 30,
    room: () => room,
    onOutput: (count) => {
      text += decoder.decode(room.subarray(0, count), { stream: true });
      return true;
    },
    onEnd: (exit) => {
      over = true;
      ended.resolve(exit);
    },
  });
  return {
    pid: pty.pid,
    shown: () => text,
    clear: () => {
      text = "";
    },
    type: (keys) => pty.write(Buffer.from(keys)),
    resize: pty.resize,
    async sees(wanted) {
      const found = () => (typeof wanted === "string" ? text.includes(wanted) : wanted.test(text));
      await until(() => found() || over);
      if (!found()) throw new Error(`it ended without showing ${wanted}:\n${text.slice(-2000)}`);
    },
    ended: ended.promise,
  };
}
