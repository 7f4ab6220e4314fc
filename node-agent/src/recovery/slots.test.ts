import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Fate, faultyDisk } from "../../test/support/faulty-disk.ts";
import { openSlots } from "./slots.ts";

const CAPACITY = 256;
const text = fc.string({ unit: "binary", maxLength: 60 }).map((one) => one.toWellFormed());
const fate: fc.Arbitrary<Fate> = fc.oneof(
  fc.constant<Fate>({ kind: "kept" }),
  fc.constant<Fate>({ kind: "lost" }),
  fc.record({
    kind: fc.constantFrom("torn" as const, "garbage" as const),
    share: fc.double({ min: 0, max: 1, noNaN: true }),
  }),
);

describe("slots", () => {
  it("ID-04 give back what was written last", () => {
    fc.assert(
      fc.property(fc.array(text, { maxLength: 12 }), (values) => {
        const disk = faultyDisk(CAPACITY);
        const slots = openSlots(disk);
        expect(slots.read()).toBeUndefined();
        for (const value of values) slots.write(value);
        expect(slots.read()).toBe(values.at(-1));
        expect(openSlots(disk).read()).toBe(values.at(-1));
      }),
    );
  });

  it("ID-04 after a loss of power at any step have the last stored value, or the one that was being written", () => {
    fc.assert(
      fc.property(
        fc.array(text, { minLength: 1, maxLength: 8 }),
        fc.integer({ min: 1, max: 16 }),
        fc.array(fate, { minLength: 2, maxLength: 2 }),
        (values, step, fates) => {
          const disk = faultyDisk(CAPACITY);
          const slots = openSlots(disk);
          disk.losePowerAt(step);
          let stored: string | undefined;
          let writing: string | undefined;
          for (const value of values) {
            writing = value;
            try {
              slots.write(value);
              stored = value;
            } catch {
              break;
            }
          }
          const after = openSlots(faultyDisk(disk.imagesAfter((index) => fates[index] ?? { kind: "lost" })));
          expect([stored, writing]).toContain(after.read());
          // And they can be written again.
          after.write("after");
          expect(after.read()).toBe("after");
        },
      ),
      { numRuns: 300 },
    );
  });

  it("ID-04 keep the last stored value through writes that fail, and go on when the disk is well again", () => {
    const disk = faultyDisk(CAPACITY);
    const slots = openSlots(disk);
    slots.write("first");
    disk.failWith(Object.assign(new Error("no space"), { code: "ENOSPC" }));
    for (const value of ["second", "third"]) expect(() => slots.write(value)).toThrow("no space");
    expect(slots.read()).toBe("first");
    expect(openSlots(disk).read()).toBe("first");
    disk.failWith(undefined);
    slots.write("fourth");
    expect(openSlots(disk).read()).toBe("fourth");
    expect(() => slots.write("x".repeat(CAPACITY))).toThrow(/do not fit/);
    expect(openSlots(disk).read()).toBe("fourth");
  });

  it("ID-04 do not take a damaged slot for a value, wherever the damage is", () => {
    const disk = faultyDisk(CAPACITY);
    const slots = openSlots(disk);
    slots.write("first");
    slots.write("second");
    const newest = disk.imagesAfter(() => ({ kind: "kept" }))[1];
    for (let byte = 0; byte < 16 + "second".length; byte += 1) {
      const images = disk.imagesAfter(() => ({ kind: "kept" }));
      images[1].writeUInt8(newest.readUInt8(byte) ^ 0x10, byte);
      expect(openSlots(faultyDisk(images)).read(), `byte ${byte}`).toBe("first");
    }
  });
});
