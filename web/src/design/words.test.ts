import { describe, expect, it } from "vitest";
import { passwordHint } from "./password-hint.ts";
import { duration, timeAgo } from "./time.ts";

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

  it("SEC-03 says how long to wait as people do", () => {
    expect([5, 60, 75].map(duration)).toEqual(["5 s", "1 min", "1 min 15 s"]);
  });
});

describe("the hint under a new password", () => {
  it("SEC-03 counts what is missing", () => {
    expect(passwordHint("")).toMatch(/At least 12/);
    expect(passwordHint("elevenchars")).toBe("1 more character.");
    expect(passwordHint("twelve chars")).toBe("Long enough (12 characters).");
  });
});
