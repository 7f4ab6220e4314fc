// @ts-check
// Input on its way to a descriptor that may take only part of it: a PTY or a pipe whose reader is slow. Written at once where
// that is possible, otherwise again and again, because libuv has no event for it.

import { writeSync } from "node:fs";

const RETRY_MS = { first: 1, most: 100 };

/**
 * @param {{ fd: number, isOver: () => boolean, onWritten?: () => void }} options `isOver`: nobody reads it any more;
 *   `onWritten` is called when the reader's input has grown.
 */
export function createInputQueue({ fd, isOver, onWritten = () => {} }) {
  /** @type {Buffer[]} */
  let unread = [];
  let unreadBytes = 0;
  /** Nobody can read any more: what is unread stays so. */
  let gone = false;
  let retryMs = RETRY_MS.first;
  /** @type {NodeJS.Timeout | undefined} */
  let retry;

  const flush = () => {
    clearTimeout(retry);
    retry = undefined;
    const before = unreadBytes;
    flushSome();
    if (unreadBytes < before) onWritten();
  };
  const flushSome = () => {
    while (unread.length > 0 && !isOver()) {
      const [next = Buffer.alloc(0)] = unread;
      const written = writeSome(fd, next);
      if (written === "gone") {
        gone = true;
        unread = [];
        return;
      }
      if (written > 0) retryMs = RETRY_MS.first;
      unreadBytes -= written;
      if (written === next.length) unread.shift();
      else {
        unread[0] = next.subarray(written);
        retry = setTimeout(flush, retryMs);
        retryMs = Math.min(RETRY_MS.most, retryMs * 2);
        return;
      }
    }
  };

  return {
    /** What was not written to it yet, or never will be. */
    unread: () => unreadBytes,
    /** @param {Buffer} bytes */
    write(bytes) {
      unreadBytes += bytes.length;
      if (isOver() || gone) return;
      unread.push(bytes);
      if (retry === undefined) flush();
    },
    dropUnread() {
      unread = [];
      unreadBytes = 0;
    },
    /** A program that writes has often read before. */
    tryUnread() {
      if (retry !== undefined) flush();
    },
    stop: () => clearTimeout(retry),
  };
}

/** @param {number} fd @param {Buffer} bytes @returns {number | "gone"} */
function writeSome(fd, bytes) {
  try {
    return writeSync(fd, bytes);
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code === "EAGAIN" ? 0 : "gone";
  }
}
