// From the local side to the shell. A person's keys pass through the escapes; a script's pipe is passed
// on as it is, and its end becomes what ends a shell: Ctrl-D. What the shell has not confirmed is kept, so that it can
// be sent again over the next connection; beyond a limit, no more is read.

import type { TerminalClient } from "@holdfast/terminal-client/client";
import { escapeHelp, escapeReader } from "./escapes.ts";
import type { LocalTerminal } from "./local-terminal.ts";

/** Beyond so much that the shell has not confirmed, no more is read. */
const MOST_WAITING_BYTES = 1024 * 1024;
const CTRL_C = 0x03;
const CTRL_R = 0x12;
const CTRL_D = "\x04";
/** A shell that shows nothing at all gets its input all the same. */
const PROMPT_WITHIN_MS = 1_000;
const again = { firstMs: 250, maxMs: 4_000 };

/** Input of one session, with a limit on what waits for the shell. */
export type Typing = {
  add(bytes: Buffer, options?: { typed: boolean }): void;
  /** Bytes that the shell has not confirmed. */
  waiting(): number;
  /** The shell confirmed some of it. */
  acknowledged(): void;
  /** Resolves when the shell has confirmed all of it, or the time is over. */
  settled(withinMs: number): Promise<void>;
};

export function controlInput(
  local: Pick<LocalTerminal, "pauseInput" | "resumeInput">,
  client: Pick<TerminalClient<Buffer>, "write" | "waiting">,
): Typing {
  let onSettled = () => {};
  return {
    add(bytes, options) {
      client.write(bytes, options);
      if (client.waiting() >= MOST_WAITING_BYTES) local.pauseInput();
    },
    waiting: client.waiting,
    acknowledged() {
      if (client.waiting() < MOST_WAITING_BYTES) local.resumeInput();
      if (client.waiting() === 0) onSettled();
    },
    settled: (withinMs) =>
      new Promise((resolve) => {
        if (client.waiting() === 0) return resolve();
        const timer = setTimeout(resolve, withinMs);
        onSettled = () => {
          clearTimeout(timer);
          resolve();
        };
      }),
  };
}

export function passKeys(
  local: LocalTerminal,
  typing: Typing,
  on: { isConnected: () => boolean; hurry: () => void; leave: (exitCode: number) => void },
): void {
  const read = escapeReader();
  local.onInput((bytes) => {
    for (const part of read(bytes)) {
      if ("send" in part) {
        if (!on.isConnected() && isKey(part.send, CTRL_C)) on.leave(130);
        else if (!on.isConnected() && isKey(part.send, CTRL_R)) on.hurry();
        else typing.add(part.send);
      } else if (part.command === "help") local.note(escapeHelp.join("\n"));
      else on.leave(0);
    }
  });
  // The terminal was closed.
  local.onInputEnd(() => on.leave(129));
}

/** Pressed once or more, and not part of a paste. */
const isKey = (bytes: Buffer, key: number) => bytes.every((byte) => byte === key);

/**
 * Begins when the shell has shown something, which is when it reads: what comes earlier is echoed twice,
 * and a Ctrl-D among it means nothing. Returns what to call at each output.
 */
export function passPipe(local: LocalTerminal, typing: Typing): { onOutput(): void; stop(): void } {
  let atLineStart = true;
  let timer: NodeJS.Timeout | undefined;
  let begun = false;
  const endInput = (pause: number) => {
    // Within a line the first one only hands the line over.
    typing.add(Buffer.from(atLineStart ? CTRL_D : CTRL_D + CTRL_D), { typed: false });
    atLineStart = true;
    endAgain(pause);
  };
  /** A program that was not reading in that moment may have missed it; while the shell is away it has not got it yet. */
  const endAgain = (pause: number) => {
    timer = setTimeout(() => {
      const next = Math.min(pause * 2, again.maxMs);
      if (typing.waiting() > 0) endAgain(next);
      else endInput(next);
    }, pause);
  };
  const begin = () => {
    if (begun) return;
    begun = true;
    clearTimeout(timer);
    local.onInput((bytes) => {
      atLineStart = bytes.at(-1) === 0x0a;
      typing.add(bytes);
    });
    local.onInputEnd(() => endInput(again.firstMs));
  };
  timer = setTimeout(begin, PROMPT_WITHIN_MS);
  return { onOutput: begin, stop: () => clearTimeout(timer) };
}

/** Undefined when the shell has got everything. */
export function describeUnconfirmed(bytes: number): string | undefined {
  if (bytes === 0) return undefined;
  return bytes === 1
    ? "The last byte of input was not confirmed by the shell: it may not have arrived."
    : `The last ${bytes} bytes of input were not confirmed by the shell: they may not have arrived.`;
}
