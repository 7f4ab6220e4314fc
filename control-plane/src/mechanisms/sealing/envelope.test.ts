import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { anyCharacter } from "../../../../testkit/schemas/any-character.ts";
import { openBox, openEnvelope, rewrapKey, sealBox, sealEnvelope } from "./envelope.ts";

const kek = randomBytes(32);
const otherKek = randomBytes(32);
const bytes = fc.uint8Array({ maxLength: 300 }).map((array) => Buffer.from(array));
const names = fc.oneof(fc.string(), fc.string({ unit: anyCharacter }));

function flipBit(box: Buffer, bit: number): Buffer {
  const changed = Buffer.from(box);
  const at = bit % (box.length * 8);
  changed[at >> 3] = (changed[at >> 3] ?? 0) ^ (1 << (at & 7));
  return changed;
}

describe("an envelope", () => {
  it("SEC-02 returns any value under any name", () => {
    fc.assert(
      fc.property(names, bytes, (name, value) => {
        expect(openEnvelope(kek, name, sealEnvelope(kek, name, value))).toEqual(value);
      }),
    );
  });

  it("SEC-02 is different each time, and never holds the value", () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 8, maxLength: 100 }), (array) => {
        const value = Buffer.from(array);
        const [one, two] = [sealEnvelope(kek, "name", value), sealEnvelope(kek, "name", value)];
        expect(one.sealedValue.equals(two.sealedValue)).toBe(false);
        expect(one.wrappedKey.equals(two.wrappedKey)).toBe(false);
        expect(one.sealedValue.includes(value)).toBe(false);
      }),
    );
  });

  it("SEC-02 does not open after any single bit has changed", () => {
    fc.assert(
      fc.property(bytes, fc.nat(), fc.boolean(), (value, bit, inKey) => {
        const { wrappedKey, sealedValue } = sealEnvelope(kek, "name", value);
        const changed = inKey
          ? { wrappedKey: flipBit(wrappedKey, bit), sealedValue }
          : { wrappedKey, sealedValue: flipBit(sealedValue, bit) };
        expect(() => openEnvelope(kek, "name", changed)).toThrow();
      }),
      { numRuns: 500 },
    );
  });

  it("SEC-02 does not open when a part of it is cut off", () => {
    const box = sealBox(kek, "context", Buffer.from("value"));
    for (let length = 0; length < box.length; length += 1) {
      expect(() => openBox(kek, "context", box.subarray(0, length)), `${length} bytes`).toThrow();
    }
    expect(() => openBox(kek, "context", Buffer.concat([box, Buffer.of(0)]))).toThrow();
  });

  it("SEC-02 does not open with another key", () => {
    fc.assert(
      fc.property(bytes, fc.uint8Array({ minLength: 32, maxLength: 32 }), (value, wrong) => {
        const envelope = sealEnvelope(kek, "name", value);
        expect(() => openEnvelope(Buffer.from(wrong), "name", envelope)).toThrow();
      }),
    );
  });

  it("SEC-02 does not open under another name, nor with the parts of two names mixed", () => {
    fc.assert(
      fc.property(names, names, (name, other) => {
        // As bytes: a lone surrogate is written as U+FFFD and cannot be distinguished from it.
        fc.pre(!Buffer.from(name).equals(Buffer.from(other)));
        const [mine, theirs] = [
          sealEnvelope(kek, name, Buffer.from("a")),
          sealEnvelope(kek, other, Buffer.from("b")),
        ];
        expect(() => openEnvelope(kek, other, mine)).toThrow();
        expect(() => openEnvelope(kek, name, { ...mine, sealedValue: theirs.sealedValue })).toThrow();
        expect(() => openEnvelope(kek, name, { ...mine, wrappedKey: theirs.wrappedKey })).toThrow();
      }),
    );
  });

  it("SEC-02 binds the value itself to its name, not only the key around it", () => {
    const { wrappedKey, sealedValue } = sealEnvelope(kek, "name", Buffer.from("value"));
    const movedKey = sealBox(kek, "key:other", openBox(kek, "key:name", wrappedKey));
    expect(() => openEnvelope(kek, "other", { wrappedKey: movedKey, sealedValue })).toThrow();
  });

  it("SEC-02 does not take a wrapped key for a value, though both are boxes", () => {
    const { wrappedKey } = sealEnvelope(kek, "name", Buffer.from("value"));
    expect(() => openBox(kek, "value:name", wrappedKey)).toThrow();
  });
});

describe("a re-wrapped key", () => {
  it("SEC-02 opens the unchanged value with the new KEK, and no longer with the old one", () => {
    fc.assert(
      fc.property(names, bytes, (name, value) => {
        const { wrappedKey, sealedValue } = sealEnvelope(kek, name, value);
        const rewrapped = rewrapKey({ from: kek, to: otherKek }, name, wrappedKey);
        expect(openEnvelope(otherKek, name, { wrappedKey: rewrapped, sealedValue })).toEqual(value);
        expect(() => openEnvelope(kek, name, { wrappedKey: rewrapped, sealedValue })).toThrow();
      }),
    );
  });

  it("SEC-02 cannot be made with a wrong KEK or under another name", () => {
    const { wrappedKey } = sealEnvelope(kek, "name", Buffer.from("value"));
    expect(() => rewrapKey({ from: otherKek, to: kek }, "name", wrappedKey)).toThrow();
    expect(() => rewrapKey({ from: kek, to: otherKek }, "other", wrappedKey)).toThrow();
  });
});
