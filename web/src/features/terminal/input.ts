// What is typed goes out at once. What is pasted goes in pieces, and waits while the socket is full:
// an acknowledgement must not queue behind a megabyte.

type Outlet = { send(bytes: Uint8Array<ArrayBuffer>): void; buffered(): number };

const PIECE_BYTES = 32 * 1024;
const MOST_BUFFERED_BYTES = 128 * 1024;
/** Sockets of browsers do not tell when they have drained. */
const LOOK_AGAIN_MS = 10;

export type Input = { write(bytes: Uint8Array<ArrayBuffer>): void; stop(): void };

export function startInput(outlet: Outlet): Input {
  let waiting: Uint8Array<ArrayBuffer>[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;

  const flush = () => {
    timer = undefined;
    while (waiting.length > 0) {
      if (outlet.buffered() > MOST_BUFFERED_BYTES) {
        timer = setTimeout(flush, LOOK_AGAIN_MS);
        return;
      }
      const piece = waiting.shift();
      if (piece) outlet.send(piece);
    }
  };

  return {
    write(bytes) {
      for (let at = 0; at < bytes.length; at += PIECE_BYTES) waiting.push(bytes.subarray(at, at + PIECE_BYTES));
      if (timer === undefined) flush();
    },
    stop() {
      clearTimeout(timer);
      waiting = [];
    },
  };
}
