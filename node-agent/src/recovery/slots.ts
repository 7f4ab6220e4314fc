// A small value in two slots of a file, written in turn and in place: the space is there before it is needed, so a full
// disk does not matter, and a write that a crash cut short leaves the slot before it.
//
//   slot    "HFR1" · generation · length · CRC32 of both and of the payload · payload (JSON)
//
// The valid slot with the highest generation counts.

import { crc32 } from "node:zlib";
import type { FileIndex, Storage } from "../journal/storage.ts";

/** Each slot is addressed like a file of its own. */
export type SlotDisk = Pick<Storage, "capacity" | "read" | "write" | "syncNow">;

export type Slots = {
  /** The newest whole value; undefined: none. */
  read(): string | undefined;
  /** On disk when it returns. After an error the value before it is still there. */
  write(value: string): void;
};

const MAGIC = 0x48465231;
const HEAD_BYTES = 16;

type Found = { slot: FileIndex; generation: number; value: string };

export function openSlots(disk: SlotDisk): Slots {
  const newest = newestIn(disk);
  let current: Pick<Found, "slot" | "generation"> | undefined = newest;
  /** Also of writes that failed: they may be on disk nevertheless. */
  let highest = newest?.generation ?? 0;
  let value = newest?.value;
  return {
    read: () => value,
    write(next) {
      const slot: FileIndex = current?.slot === 0 ? 1 : 0;
      highest += 1;
      const content = encode(highest, next);
      if (content.length > disk.capacity) {
        throw new Error(`${content.length} bytes do not fit into a slot of ${disk.capacity}`);
      }
      disk.write(slot, content, 0);
      disk.syncNow(slot);
      current = { slot, generation: highest };
      value = next;
    },
  };
}

export function newestIn(disk: Pick<SlotDisk, "capacity" | "read">): Found | undefined {
  const found = ([0, 1] as const).flatMap((slot) => decode(disk, slot) ?? []);
  return found.sort((one, other) => other.generation - one.generation)[0];
}

function encode(generation: number, value: string): Buffer {
  const payload = Buffer.from(value);
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt32BE(MAGIC, 0);
  head.writeUInt32BE(generation, 4);
  head.writeUInt32BE(payload.length, 8);
  head.writeUInt32BE(crcOf(head, payload), 12);
  return Buffer.concat([head, payload]);
}

function decode(disk: Pick<SlotDisk, "capacity" | "read">, slot: FileIndex): Found | undefined {
  const content = disk.read(slot, 0, disk.capacity);
  if (content.length < HEAD_BYTES || content.readUInt32BE(0) !== MAGIC) return undefined;
  const payload = content.subarray(HEAD_BYTES, HEAD_BYTES + content.readUInt32BE(8));
  if (payload.length !== content.readUInt32BE(8) || crcOf(content, payload) !== content.readUInt32BE(12)) {
    return undefined;
  }
  return { slot, generation: content.readUInt32BE(4), value: payload.toString("utf8") };
}

function crcOf(head: Buffer, payload: Buffer): number {
  return crc32(payload, crc32(head.subarray(4, 12)));
}
