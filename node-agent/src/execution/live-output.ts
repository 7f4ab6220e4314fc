// The output of a step while it runs, in numbered pieces. Many small writes become one piece; the order between the streams is
// kept. Pieces wait while there is no connection; together they are not larger than what a result keeps.

import type { AgentFrame } from "@holdfast/contracts/execution/frames";
import type { OutputStream } from "../drivers/sandbox/driver.ts";

type LogFrame = Extract<AgentFrame, { type: "log" }>;
export type Piece = Pick<LogFrame, "seq" | "stream" | "text">;

export type LiveOutput = {
  add(stream: OutputStream, text: string): void;
  /** Sends what waits, as far as it can be sent. */
  flush(): void;
  /** Nothing is sent afterwards. */
  end(): void;
};

const GATHER_MS = 100;
const GATHER_CHARACTERS = 16 * 1024;

/** `send` returns false while there is no connection. */
export function createLiveOutput(send: (piece: Piece) => boolean): LiveOutput {
  const waiting: Piece[] = [];
  let gathered: { stream: OutputStream; text: string } | undefined;
  let timer: NodeJS.Timeout | undefined;
  let seq = 0;

  const cut = () => {
    if (!gathered) return;
    seq += 1;
    waiting.push({ seq, ...gathered });
    gathered = undefined;
  };
  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    cut();
    while (waiting[0] && send(waiting[0])) waiting.shift();
  };
  return {
    add(stream, text) {
      if (text === "") return;
      if (gathered && gathered.stream !== stream) cut();
      gathered = { stream, text: (gathered?.text ?? "") + text };
      if (gathered.text.length >= GATHER_CHARACTERS) flush();
      else timer ??= setTimeout(flush, GATHER_MS);
    },
    flush,
    end() {
      flush();
      waiting.length = 0;
    },
  };
}
