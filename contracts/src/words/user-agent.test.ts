import { describe, expect, it } from "vitest";
import { describeUserAgent } from "./user-agent.ts";

describe("a browser in words", () => {
  it.for([
    ["Mozilla/5.0 (X11; Linux x86_64; rv:147.0) Gecko/20100101 Firefox/147.0", "Firefox on Linux"],
    [
      "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML) Chrome/156.0 Safari/537.36 Edg/156.0",
      "Edge on Windows",
    ],
    [
      "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML) HeadlessChrome/156.0 Safari/537.36",
      "Chrome on Linux",
    ],
    [
      "Mozilla/5.0 (Macintosh; Intel Mac OS X 15_2) AppleWebKit/605.1 Version/19.0 Safari/605.1",
      "Safari on macOS",
    ],
    [
      "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1 CriOS/156.0 Safari/604.1",
      "Chrome on iOS",
    ],
    ["Mozilla/5.0 (Linux; Android 16) AppleWebKit/537.36 Chrome/156.0 Mobile Safari/537.36", "Chrome on Android"],
    ["curl/8.5.0", "curl"],
    ["something else entirely", "something else entirely"],
    [null, "unknown"],
  ] as const)("SEC-03 %s: %s", ([text, words]) => {
    expect(describeUserAgent(text)).toBe(words);
  });
});
