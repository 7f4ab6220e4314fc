import { describe, expect, it } from "vitest";
import { nothing, withPiece } from "./serial-text.ts";

describe("the serial log on a page", () => {
  it("DASH-05 grows with each piece, and begins again where output was dropped", () => {
    const one = withPiece(nothing, { text: "a\n", skipped: false });
    const two = withPiece(one, { text: "b\n", skipped: false });
    expect(two).toEqual({ text: "a\nb\n", cut: false, loading: false, error: undefined });
    expect(withPiece(two, { text: "z\n", skipped: true })).toMatchObject({ text: "z\n", cut: true });
  });

  it("DASH-05 keeps the newest 256 KiB, from the beginning of a line", () => {
    const line = `${"x".repeat(1023)}\n`;
    const log = Array.from({ length: 300 }).reduce<typeof nothing>(
      (before) => withPiece(before, { text: line, skipped: false }),
      nothing,
    );
    expect(log.cut).toBe(true);
    expect(log.text).toBe(line.repeat(log.text.length / line.length));
    expect(log.text.length).toBeLessThanOrEqual(256 * 1024);
    expect(log.text.length).toBeGreaterThan(250 * 1024);
    const oneLine = withPiece(nothing, { text: "y".repeat(300 * 1024), skipped: false });
    expect(oneLine.text).toHaveLength(256 * 1024);
  });
});
