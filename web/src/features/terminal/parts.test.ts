// The small pure parts of a terminal's page.

import { CallError } from "@holdfast/contracts/client";
import { ApiError } from "@holdfast/contracts/errors";
import { terminalHops } from "@holdfast/contracts/reasons/hops";
import { terminalFailures } from "@holdfast/contracts/reasons/terminal";
import { ACKNOWLEDGE_BYTES } from "@holdfast/contracts/terminal-frames";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { acknowledging } from "./acknowledging.ts";
import { chainOf, stoppedAt } from "./chain.ts";
import { hopInWords, ofFrame, ofRefusal, ownerInWords, remedyOf } from "./failures.ts";
import { keySequence, withCtrl } from "./keys.ts";
import { defaultLook, lookFrom, withinSizes } from "./look.ts";
import { sessionFromSearch } from "./session-search.ts";
import { widthOf, widths } from "./widths.ts";
import { exitInWords } from "./words.ts";

const refusal = (...given: ConstructorParameters<typeof ApiError>) => {
  const error = new ApiError(...given);
  return new CallError(error.status, error.envelope("c1"));
};

describe("a failure in words", () => {
  it("TERM-09 has words for every hop and owner, and a button for every code that can be tried again", () => {
    for (const hop of terminalHops) expect(hopInWords(hop)).not.toContain("_");
    for (const [code, entry] of Object.entries(terminalFailures)) {
      expect(ownerInWords(entry.owner)).not.toBe("");
      if (entry.retryable) expect(remedyOf({ code, retryable: true }), code).not.toBe("none");
    }
  });

  it("TERM-01 says why no token was given", () => {
    const failure = ofRefusal(
      refusal("terminal_token_mint_failed", { message: "The allocation is being released." }),
    );
    expect(failure).toMatchObject({
      code: "terminal_token_mint_failed",
      hop: "terminal_token_mint",
      message: terminalFailures.terminal_token_mint_failed.message,
      why: "The allocation is being released.",
      correlationId: "c1",
      owner: "tenant",
    });
    expect(remedyOf(failure)).toBe("later");
    const onNode = refusal("terminal_token_mint_failed", { details: { owner: "node" } });
    expect(ofRefusal(onNode)).toMatchObject({ owner: "node" });
    expect(remedyOf(ofRefusal(refusal("forbidden")))).toBe("later");
    expect(remedyOf(ofRefusal(refusal("not_found")))).toBe("none");
    expect(ofRefusal(refusal("terminal_gateway_missing"))).toMatchObject({ retryable: true, owner: "operator" });
    expect(ofRefusal(refusal("not_found"))).toMatchObject({ code: "not_found", retryable: false });
    expect(ofRefusal(new TypeError("fetch failed"))).toMatchObject({ retryable: true, owner: "operator" });
  });

  it("TERM-05 takes a code that it does not know as the gateway tells it", () => {
    const words = { hop: "new_hop", owner: "moon", message: "m", action: "a", retryable: true };
    const failure = ofFrame({ code: "terminal_of_tomorrow", ...words, correlation_id: "c1" });
    expect(failure).toMatchObject({ message: "m", action: "a" });
    expect([hopInWords(failure.hop), ownerInWords(failure.owner), remedyOf(failure)]).toEqual([
      "new hop",
      "moon",
      "same",
    ]);
  });
});

describe("acknowledgements", () => {
  it("TERM-10 come at the latest after what is allowed, and never say more than was shown", () => {
    const sizes = fc.array(fc.integer({ min: 1, max: ACKNOWLEDGE_BYTES / 2 }), { maxLength: 200 });
    fc.assert(
      fc.property(sizes, (chunks) => {
        const credit = acknowledging();
        let total = 0;
        let said = 0;
        for (const chunk of chunks) {
          total += chunk;
          said = credit.done(chunk) ?? said;
          expect(said).toBeLessThanOrEqual(total);
          expect(total - said).toBeLessThan(ACKNOWLEDGE_BYTES);
        }
      }),
    );
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
