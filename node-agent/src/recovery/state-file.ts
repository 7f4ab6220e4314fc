// recovery.bin: the state of the recovery in two slots. All its space is allocated when it is created, at the join or at
// the first start of an agent that joined before, so that a node whose disk is full can still recover.

import {
  closeSync,
  constants,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  openSync,
  readFileSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { isErrno, syncDirectory } from "@holdfast/kit/files";
import { explainWriteError, type StateFiles } from "../identity/state-directory.ts";
import { newestIn, openSlots, type SlotDisk } from "./slots.ts";
import { parseState, type RecoveryState, type RecoveryStore } from "./state.ts";

/** An identity with sixteen task keys and four roots takes about 10 KB. */
const SLOT_BYTES = 32 * 1024;
const FILE_BYTES = 2 * SLOT_BYTES;

type RecoveryFile = RecoveryStore & { close(): void };

/** Never throws: what cannot be read is empty. Creates the file if the disk allows it. */
export function openRecoveryFile(files: StateFiles, nodeId: string): RecoveryFile {
  let open: number | undefined;
  const close = () => {
    if (open !== undefined) closeSync(open);
    open = undefined;
  };
  const file = (): number => {
    // Somebody removed it: what is written into it would be lost.
    if (open !== undefined && fstatSync(open).nlink === 0) close();
    open ??= openAllocated(files);
    return open;
  };
  const slots = openSlots({
    ...slotsIn(attempt(() => contentOf(files)) ?? Buffer.alloc(0)),
    write: (slot, content, position) => writeAll(file(), content, slot * SLOT_BYTES + position),
    syncNow: () => fdatasyncSync(file()),
  });
  // If it fails, it is retried with the first write.
  attempt(file);
  return {
    read: () => parseState(slots.read(), nodeId),
    write(state) {
      try {
        slots.write(JSON.stringify(state));
      } catch (error) {
        attempt(close);
        throw explainWriteError(error, files.recovery);
      }
    },
    close,
  };
}

/** Creates nothing. Throws when the file is there and cannot be read. */
export function readRecoveryFile(files: StateFiles, nodeId: string): RecoveryState {
  return parseState(newestIn(slotsIn(contentOf(files)))?.value, nodeId);
}

function slotsIn(content: Buffer): Pick<SlotDisk, "capacity" | "read"> {
  return {
    capacity: SLOT_BYTES,
    read: (slot, position, length) => content.subarray(slot * SLOT_BYTES + position).subarray(0, length),
  };
}

function contentOf(files: StateFiles): Buffer {
  try {
    return readFileSync(files.recovery);
  } catch (error) {
    if (isErrno(error, "ENOENT")) return Buffer.alloc(0);
    throw error;
  }
}

function openAllocated(files: StateFiles): number {
  const file = openSync(files.recovery, constants.O_RDWR | constants.O_CREAT, 0o600);
  const { size } = fstatSync(file);
  try {
    if (size < FILE_BYTES) {
      writeAll(file, Buffer.alloc(FILE_BYTES - size), size);
      fsyncSync(file);
      syncDirectory(files.directory);
    }
    return file;
  } catch (error) {
    closeSync(file);
    // A new file that is only partly allocated would use up the disk for nothing.
    if (size === 0) unlinkSync(files.recovery);
    throw error;
  }
}

function writeAll(file: number, content: Buffer, position: number): void {
  let done = 0;
  while (done < content.length) done += writeSync(file, content, done, content.length - done, position + done);
}

function attempt<T>(act: () => T): T | undefined {
  try {
    return act();
  } catch {
    return undefined;
  }
}
