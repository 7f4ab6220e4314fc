// The small pure parts of a terminal's page.

import { terminalHops } from "@holdfast/contracts/reasons/hops";
import { terminalFailures } from "@holdfast/contracts/reasons/terminal";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { chainOf, stoppedAt } from "./chain.ts";
import { hopInWords, ownerInWords } from "./failures.ts";
import { keySequence, withCtrl } from "./keys.ts";
import { defaultLook, lookFrom, withinSizes } from "./look.ts";
import { sessionFromSearch } from "./session-search.ts";
import { widthOf, widths } from "./widths.ts";
import { exitInWords } from "./words.ts";

describe("a failure in words", () => {
  it("TERM-09 has words for every hop and owner", () => {
    for (const hop of terminalHops) expect(hopInWords(hop)).not.toContain("_");
    for (const { owner } of Object.values(terminalFailures)) expect(ownerInWords(owner)).not.toBe("");
  });

  it("TERM-05 shows a hop and an owner that it does not know as the gateway names them", () => {
    expect([hopInWords("new_hop"), ownerInWords("moon")]).toEqual(["new hop", "moon"]);
  });
});

describe("keys of the bar", () => {
  it("TERM-10 speak both dialects of cursor keys", () => {
    const plain = { application: false, ctrl: false };
    expect(keySequence("↑", plain)).toBe("\x1b[A");
    expect(keySequence("↑", { ...plain, application: true })).toBe("\x1bOA");
    expect(keySequence("→", { application: true, ctrl: true })).toBe("\x1b[1;5C");
    expect(keySequence("Esc", plain)).toBe("\x1b");
    expect(keySequence("|", plain)).toBe("|");
  });

  it("TERM-10 make control characters of letters, and leave the rest alone", () => {
    expect([withCtrl("c"), withCtrl("C"), withCtrl("["), withCtrl(" ")]).toEqual(["\x03", "\x03", "\x1b", "\0"]);
    expect([withCtrl("ä"), withCtrl("abc"), withCtrl("1")]).toEqual(["ä", "abc", "1"]);
  });
});

describe("the look", () => {
  it("TERM-10 is always one that can be shown, whatever was stored", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
        const { fontSize } = lookFrom(text);
        expect(withinSizes(fontSize)).toBe(fontSize);
      }),
    );
    expect(lookFrom(null)).toEqual(defaultLook);
    const own = { fontSize: 18, theme: "contrast", screenReader: true } as const;
    expect(lookFrom(JSON.stringify(own))).toEqual(own);
  });
});

describe("widths", () => {
  const cells = (text: string) => [...text].reduce((sum, each) => sum + widthOf(each.codePointAt(0) ?? 0), 0);

  it("TERM-10 counts cells as the hosts do", () => {
    expect([
      cells("abc"),
      cells("äöü"),
      cells("e\u0301"),
      cells("漢字"),
      cells("한"),
      cells("🐙"),
      cells("⌚"),
      cells("✓"),
    ]).toEqual([3, 3, 1, 4, 2, 2, 2, 1]);
    expect(cells("│└─╯")).toBe(4);
  });

  it("TERM-10 joins what has no width to the character before", () => {
    const before = widths.charProperties(0x1f419, 0);
    expect([before >> 1, before & 1]).toEqual([2, 0]);
    const joined = widths.charProperties(0x301, before);
    expect([joined >> 1, joined & 1]).toEqual([2, 1]);
    expect(widths.charProperties(0x301, 0) & 1).toBe(0);
  });
});

describe("the address and the stored chain", () => {
  it("TERM-10 keeps the session and nothing that is none", () => {
    const id = "0199f0a0-0000-7000-8000-000000000001";
    expect(sessionFromSearch({ session: id, token: "x" })).toEqual({ session: id });
    expect(sessionFromSearch({ session: "../../etc" })).toEqual({});
  });

  it("TERM-08 is shown in milliseconds since it was asked for", () => {
    const at = (ms: number) => ({ at: `2026-01-01T00:00:00.0${ms}Z`, correlation_id: "c1" });
    const chain = { token_ready: at(10), browser_ws_ready: at(55), failed: at(99) };
    expect(chainOf({ chain, created_at: "2026-01-01T00:00:00.000Z" })).toEqual({
      token_ready: 10,
      browser_ws_ready: 55,
      failed: 99,
    });
  });

  it("TERM-08 stops where the failure was, also when the stream is missing because of the shell", () => {
    const chain = { token_ready: 1, browser_ws_ready: 2, terminal_open_sent: 3 };
    expect(stoppedAt(chain, terminalFailures.terminal_node_stream_timeout.hop)).toBe("node_stream_connected");
    expect(stoppedAt(chain, terminalFailures.terminal_pty_failed.hop)).toBe("pty_ready");
    expect(stoppedAt({ ...chain, node_stream_connected: 4, pty_ready: 5 }, "x")).toBeUndefined();
  });

  it("TERM-10 says plainly how a shell ended", () => {
    expect(exitInWords({ code: 0, signal: null })).toBe("The shell has ended.");
    expect(exitInWords({ code: 130, signal: null })).toContain("code 130");
    expect(exitInWords({ code: null, signal: "SIGKILL" })).toContain("SIGKILL");
  });
});
