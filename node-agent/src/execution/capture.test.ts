import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createCapture } from "./capture.ts";
import { createRedaction, MARKER } from "./redaction/redactor.ts";

const { stream } = createRedaction(["the-secret-value"]);

describe("captured output", () => {
  it("EXEC-02 is the beginning of what was printed, complete as long as it fits", () => {
    const unit = fc.constantFrom("a", "\n", "\u001b", "ü", "漢", "😀", "\0", "\ud800");
    const texts = fc.array(fc.string({ unit, maxLength: 30 }), { maxLength: 20 });
    fc.assert(
      fc.property(
        texts,
        fc.integer({ min: 1, max: 120 }),
        fc.integer({ min: 1, max: 300 }),
        (parts, characters, bytes) => {
          const capture = createCapture(stream(), { characters, bytes });
          const kept = parts.map((part) => capture.add(part)).join("") + capture.end();
          const whole = parts.map((part) => part.replaceAll("\0", "").toWellFormed()).join("");
          expect(kept).toBe(capture.text());
          expect(whole.startsWith(kept)).toBe(true);
          expect(kept.isWellFormed()).toBe(true);
          expect(kept.length).toBeLessThanOrEqual(characters);
          expect(Buffer.byteLength(JSON.stringify(kept)) - 2).toBeLessThanOrEqual(bytes);
          expect(capture.truncated()).toBe(kept !== whole);
        },
      ),
    );
  });

  it("EXEC-02 is 65,536 characters of any language", () => {
    for (const character of ["x", "ü", "漢", "\n"]) {
      const capture = createCapture(stream());
      capture.add(character.repeat(65_536));
      capture.end();
      expect([capture.text().length, capture.truncated()]).toEqual([65_536, false]);
      capture.add(character);
      expect([capture.text().length, capture.truncated()]).toEqual([65_536, true]);
    }
  });

  it("AGENT-10 never ends with the beginning of a secret, wherever it is cut", () => {
    for (let characters = 1; characters < 40; characters += 1) {
      const capture = createCapture(stream(), { characters, bytes: 1000 });
      const kept = capture.add("0123456789 the-secret-") + capture.add("value 0123456789") + capture.end();
      expect(`0123456789 ${MARKER} 0123456789`.startsWith(kept), kept).toBe(true);
    }
  });
});
