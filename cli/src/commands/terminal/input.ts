// From the local side to the shell. A person's keys pass through the escapes; a script's pipe is passed
// on as it is, and its end becomes what ends a shell: Ctrl-D.

import type { Connection } from "./connection.ts";
import { escapeHelp, escapeReader } from "./escapes.ts";
import type { LocalTerminal } from "./local-terminal.ts";

/** Undefined while there is no connection. */
type Target = () => Connection | undefined;

/** Beyond so much that waits for the network, no more is read. */
const MOST_WAITING_BYTES = 256 * 1024;
const CTRL_C = 0x03;
const CTRL_D = "\x04";
/** A shell that shows nothing at all gets its input all the same. */
const PROMPT_WITHIN_MS = 1_000;
const again = { firstMs: 250, maxMs: 4_000 };

export function passKeys(local: LocalTerminal, target: Target, leave: (exitCode: number) => void): void {
  const read = escapeReader();
  local.onInput((bytes) => {
    for (const typed of read(bytes)) {
      const connection = target();
      if ("send" in typed) {
        if (connection) passOn(local, connection, typed.send);
        else if (typed.send.includes(CTRL_C)) leave(130);
      } else if (typed.command === "help") local.note(escapeHelp.join("\n"));
      else leave(0);
    }
  });
  // The terminal was closed.
  local.onInputEnd(() => leave(129));
}

/**
 * Begins when the shell has shown something, which is when it reads: what comes earlier is echoed twice,
 * and a Ctrl-D among it means nothing. Answers what to call at each output.
 */
export function passPipe(local: LocalTerminal, target: Target): { shellSpoke(): void; stop(): void } {
  let atLineStart = true;
  let timer: NodeJS.Timeout | undefined;
  let begun = false;
  const endInput = (pause: number) => {
    // Within a line the first one only hands the line over.
    target()?.send(Buffer.from(atLineStart ? CTRL_D : CTRL_D + CTRL_D));
    atLineStart = true;
    // A program that was not reading in that moment may have missed it.
    timer = setTimeout(() => endInput(Math.min(pause * 2, again.maxMs)), pause);
  };
  const begin = () => {
    if (begun) return;
    begun = true;
    clearTimeout(timer);
    local.onInput((bytes) => {
      const connection = target();
      if (!connection) return;
      atLineStart = bytes.at(-1) === 0x0a;
      passOn(local, connection, bytes);
    });
    local.onInputEnd(() => endInput(again.firstMs));
  };
  timer = setTimeout(begin, PROMPT_WITHIN_MS);
  return { shellSpoke: begin, stop: () => clearTimeout(timer) };
}

function passOn(local: LocalTerminal, connection: Connection, bytes: Buffer): void {
  connection.send(bytes, () => {
    if (connection.waiting() < MOST_WAITING_BYTES) local.resumeInput();
  });
  if (connection.waiting() >= MOST_WAITING_BYTES) local.pauseInput();
}
