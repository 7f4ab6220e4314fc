// The journal's disk with everything that can go wrong: power lost at any step, writes that did not
// arrive, arrived in part or as garbage, and errors. What was synced is kept, as a real disk promises.

import type { FileIndex, Storage } from "../../src/journal/storage.ts";

/** What became of a write that was not synced when the power went. */
export type Fate = { kind: "kept" } | { kind: "lost" } | { kind: "torn" | "garbage"; share: number };

type Write = { file: FileIndex; content: Buffer; position: number };
export type Images = [Buffer, Buffer];

export type FaultyDisk = Storage & {
  /** The power goes at this step from now (1 is the next write or sync): nothing happens afterwards. */
  losePowerAt(step: number): void;
  /** Every write and sync fails from now on, until undone. */
  failWith(error: Error | undefined): void;
  readonly powerLost: boolean;
  readonly steps: number;
  /** How many writes have an open fate. */
  readonly unsynced: number;
  /** What a reader finds after the power is back. */
  imagesAfter(fate: (write: number) => Fate): Images;
};

export function faultyDisk(start: number | Images): FaultyDisk {
  const seen: Images =
    typeof start === "number"
      ? [Buffer.alloc(start), Buffer.alloc(start)]
      : [Buffer.from(start[0]), Buffer.from(start[1])];
  const durable: Images = [Buffer.from(seen[0]), Buffer.from(seen[1])];
  let pending: Write[] = [];
  let steps = 0;
  let lastStep = Number.POSITIVE_INFINITY;
  let failure: Error | undefined;

  function step(): void {
    if (failure) throw failure;
    steps += 1;
    if (steps >= lastStep) throw new Error("The power is gone.");
  }
  function makeDurable(writes: readonly Write[]): void {
    for (const { file, content, position } of writes) content.copy(durable[file], position);
    pending = pending.filter((write) => !writes.includes(write));
  }

  return {
    capacity: seen[0].length,
    read: (file, position, length) => Buffer.from(seen[file].subarray(position, position + length)),
    write(file, content, position) {
      // A write that the power cut short may have arrived, like any other that was not synced.
      if (steps < lastStep && !failure) pending.push({ file, content: Buffer.from(content), position });
      step();
      content.copy(seen[file], position);
    },
    syncNow(file) {
      step();
      makeDurable(pending.filter((write) => write.file === file));
    },
    async sync(file) {
      step();
      const covered = pending.filter((write) => write.file === file);
      await new Promise((resolve) => setImmediate(resolve));
      if (steps >= lastStep) throw new Error("The power is gone.");
      makeDurable(covered);
    },
    close() {},
    losePowerAt(after) {
      lastStep = steps + after;
    },
    failWith(error) {
      failure = error;
    },
    get powerLost() {
      return steps >= lastStep;
    },
    get steps() {
      return steps;
    },
    get unsynced() {
      return pending.length;
    },
    imagesAfter(fate) {
      const images: Images = [Buffer.from(durable[0]), Buffer.from(durable[1])];
      for (const [index, { file, content, position }] of pending.entries()) {
        arrive(images[file], content, position, fate(index));
      }
      return images;
    },
  };
}

function arrive(image: Buffer, content: Buffer, position: number, fate: Fate): void {
  if (fate.kind === "lost") return;
  const whole = fate.kind === "kept" ? content.length : Math.floor(fate.share * content.length);
  content.copy(image, position, 0, whole);
  if (fate.kind === "garbage") image.fill(0xa5, position + whole, position + content.length);
}
