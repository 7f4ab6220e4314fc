// UUID version 7 (RFC 9562): time-ordered, so that primary keys append and a cursor is an id.
// PostgreSQL gets `uuidv7()` only in 18 and we support 15, so ids are made here.

import { randomFillSync } from "node:crypto";

/** As we write them: lower case. */
export const uuidForm = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

const BYTES = 10;
const pool = Buffer.alloc(BYTES * 1024);
/** Where the last bytes were taken: from the end to the beginning. */
let position = 0;
let lastMillisecond = 0;
let sequence = 0;

/** Ids of one process are strictly increasing: 12 bits behind the millisecond count within it. */
export function uuidv7(now: number = Date.now()): string {
  // Read where they lie: a view of each ten bytes would cost more than all the rest.
  if (position === 0) {
    randomFillSync(pool);
    position = pool.length;
  }
  position -= BYTES;
  if (now > lastMillisecond) {
    lastMillisecond = now;
    sequence = pool.readUInt16BE(position) & 0x7ff;
  } else {
    sequence += 1;
    if (sequence > 0xfff) {
      lastMillisecond += 1;
      sequence = 0;
    }
  }
  const time = lastMillisecond.toString(16).padStart(12, "0");
  const variant = (0x80 | ((pool[position + 2] ?? 0) & 0x3f)).toString(16);
  const tail = pool.toString("hex", position + 3, position + BYTES);
  return (
    `${time.slice(0, 8)}-${time.slice(8)}-7${sequence.toString(16).padStart(3, "0")}-` +
    `${variant}${tail.slice(0, 2)}-${tail.slice(2)}`
  );
}

/** When a version 7 UUID was made. */
export function uuidv7Time(id: string): Date {
  return new Date(Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16));
}
