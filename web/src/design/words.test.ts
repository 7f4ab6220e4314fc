import { bytesInWords } from "@holdfast/contracts/words/bytes";
import { describe, expect, it } from "vitest";
import { passwordHint } from "./forms/password-hint.ts";
import { duration, secondsAgo, timeAgo, tookMs } from "./values/time.ts";

const now = Date.parse("2026-03-01T03:00:00.000Z");
const at = (seconds: number) => new Date(now + seconds * 1000).toISOString();

describe("times in words", () => {
  it.each([
    [-2, "just now"],
    [-61, "1 minute ago"],
    [-3 * 3600 - 59 * 60, "3 hours ago"],
    [-86_400 * 40, "1 month ago"],
    [7 * 86_400 - 1, "in 7 days"],
    [15 * 60 - 2, "in 15 minutes"],
    [30, "in less than a minute"],
  ])("%i seconds from now is %s", (seconds, words) => {
    expect(timeAgo(at(seconds), now)).toBe(words);
  });

  it("says how long to wait as people do", () => {
    expect([5, 60, 75, 3_600, 86_100].map(duration)).toEqual(["5 s", "1 min", "1 min 15 s", "1 h", "23 h 55 min"]);
  });

  it("says how long a phase took in the unit that fits", () => {
    expect([0.04, 0.42, 12.4, 340, 1_240, 75_000].map(tookMs)).toEqual([
      "0 ms",
      "0.4 ms",
      "12 ms",
      "340 ms",
      "1.2 s",
      "1 min 15 s",
    ]);
  });

  it("counts the seconds since a node was heard, and never less than none", () => {
    expect([50_400, 61, 60, 3, 0, -4, -59, -61].map((seconds) => secondsAgo(at(seconds), now))).toEqual([
      "14 h ahead of the server's clock",
      "1 min 1 s ahead of the server's clock",
      "0 s ago",
      "0 s ago",
      "0 s ago",
      "4 s ago",
      "59 s ago",
      "1 minute ago",
    ]);
  });
});

describe("sizes in words", () => {
  it.each([
    [0, "0 B"],
    [1_023, "1023 B"],
    [1_536, "1.5 KiB"],
    [16 * 1024 ** 3, "16 GiB"],
    [1.5 * 1024 ** 5, "1536 TiB"],
  ])("%i bytes are %s", (bytes, words) => {
    expect(bytesInWords(bytes)).toBe(words);
  });
});

describe("the hint under a new password", () => {
  it("counts what is missing", () => {
    expect(passwordHint("")).toMatch(/At least 12/);
    expect(passwordHint("elevenchars")).toBe("1 more character.");
    expect(passwordHint("twelve chars")).toBe("Long enough (12 characters).");
  });
});
