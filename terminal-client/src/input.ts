// What a client has sent to a shell, or is about to send, and what nobody has acknowledged yet. It outlives the
// client's connections: after each of them input goes on where the shell's own count stands, so that no byte is lost
// and none arrives twice. Pure: the page and the command line bring the socket.

import { type ClientFrame, INPUT_WINDOW_BYTES, type InputPlace } from "@holdfast/contracts/terminal/frames";

const PIECE_BYTES = 32 * 1024;

export type TerminalInput<Bytes extends Uint8Array = Uint8Array> = {
  /** Offered at every connection to the shell. */
  readonly writer: string;
  /** False: there is no room for it, and nothing of it was taken. `typed: false` is not counted as a person's input. */
  add(bytes: Bytes, options?: { typed?: boolean }): boolean;
  /**
   * The server named the place from which it wants input; undefined: it does not count input. Returns the answer that
   * has to leave before any further input.
   */
  place(named: InputPlace | undefined): ClientFrame | undefined;
  /** So many bytes have reached the shell, in all. */
  acknowledge(bytes: number): void;
  /** The connection is gone: nothing leaves before the next place. */
  disconnect(): void;
  /** What to send now. Undefined: nothing, or an acknowledgement has to come first. */
  next(): Bytes | undefined;
  /** Bytes that are not acknowledged, sent or not. */
  waiting(): number;
  /** Typed bytes of which nobody confirmed that they reached the shell. */
  unconfirmed(): number;
};

/** `most`: bytes that it keeps. */
export function createTerminalInput<Bytes extends Uint8Array = Uint8Array>(most: number): TerminalInput<Bytes> {
  /** What is not acknowledged, in order; offsets count from the writer's first byte. */
  const chunks: { at: number; bytes: Bytes }[] = [];
  let acknowledged = 0;
  let sent = 0;
  let end = 0;
  let typedEnd = 0;
  /** Of the chunk that is sent next. */
  let cursor = 0;
  /** Typed bytes that can no longer be acknowledged. */
  let unknown = 0;
  let mode: "disconnected" | "counted" | "uncounted" = "disconnected";

  const typedBetween = (from: number, to: number) => Math.max(0, Math.min(to, typedEnd) - from);
  const acknowledge = (upTo: number) => {
    acknowledged = upTo;
    const kept = chunks.findIndex(({ at, bytes }) => at + bytes.length > upTo);
    const gone = kept === -1 ? chunks.length : kept;
    chunks.splice(0, gone);
    cursor = Math.max(0, cursor - gone);
  };
  /** Nobody will ever acknowledge what was sent up to here. */
  const giveUpOn = (upTo: number) => {
    unknown += typedBetween(acknowledged, upTo);
    acknowledge(upTo);
  };
  const sendFrom = (from: number | null) => {
    if (from === null) return giveUpOn(sent);
    if (from < acknowledged || from > sent) {
      // The holder of the shell has forgotten this writer: it is unknown which input has arrived.
      giveUpOn(end);
      acknowledged = from;
      end = from;
      typedEnd = from;
    }
    sent = from;
    cursor = chunks.findIndex(({ at, bytes }) => at + bytes.length > from);
    if (cursor === -1) cursor = chunks.length;
  };

  return {
    writer: newWriter(),
    add(bytes, { typed = true } = {}) {
      if (end - acknowledged + bytes.length > most) return false;
      if (bytes.length > 0) chunks.push({ at: end, bytes });
      end += bytes.length;
      if (typed) typedEnd = end;
      return true;
    },
    place(named) {
      if (named === undefined) {
        if (mode === "disconnected") giveUpOn(sent);
        mode = "uncounted";
        return undefined;
      }
      sendFrom(named.from);
      mode = "counted";
      return { type: "input", attachment: named.attachment, from: sent };
    },
    acknowledge(bytes) {
      if (bytes > acknowledged) acknowledge(Math.min(bytes, sent));
    },
    disconnect() {
      mode = "disconnected";
    },
    next() {
      const chunk = chunks[cursor];
      const room = mode === "counted" ? acknowledged + INPUT_WINDOW_BYTES - sent : PIECE_BYTES;
      if (mode === "disconnected" || !chunk || room <= 0) return undefined;
      const from = sent - chunk.at;
      const piece = chunk.bytes.subarray(from, from + Math.min(PIECE_BYTES, room)) as Bytes;
      sent += piece.length;
      if (from + piece.length === chunk.bytes.length) cursor += 1;
      if (mode === "uncounted") acknowledge(sent);
      return piece;
    },
    waiting: () => end - acknowledged,
    unconfirmed: () => unknown + typedBetween(acknowledged, end),
  };
}

function newWriter(): string {
  const id = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(id, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
