import { INPUT_WINDOW_BYTES, isWriter } from "@holdfast/contracts/terminal/frames";
import { describe, expect, it } from "vitest";
import { createTerminalInput, type TerminalInput } from "./input.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const everything = (input: TerminalInput) => {
  const pieces: Uint8Array[] = [];
  for (let piece = input.next(); piece; piece = input.next()) pieces.push(piece);
  return Buffer.concat(pieces);
};
const textOf = (input: TerminalInput) => everything(input).toString();

describe("input that a client keeps", () => {
  it("TERM-10 leaves after the place for it was named, and again from there when a connection broke", () => {
    const input = createTerminalInput(1_000);
    expect(isWriter(input.writer)).toBe(true);
    input.add(bytes("hello "));
    expect(textOf(input)).toBe("");
    expect(input.place({ attachment: 1, from: 0 })).toEqual({ type: "input", attachment: 1, from: 0 });
    expect(textOf(input)).toBe("hello ");
    input.add(bytes("world"));
    expect(textOf(input)).toBe("world");
    input.acknowledge(3);
    input.disconnect();
    input.add(bytes("!"));
    expect(textOf(input)).toBe("");
    expect(input.place({ attachment: 1, from: 8 })).toEqual({ type: "input", attachment: 1, from: 8 });
    expect(textOf(input)).toBe("rld!");
    expect(input.unconfirmed()).toBe(9);
    input.acknowledge(12);
    expect([input.waiting(), input.unconfirmed()]).toEqual([0, 0]);
  });

  it("TERM-10 sends a megabyte in pieces, in order, and no more at a time than the window", () => {
    const input = createTerminalInput(2 ** 21);
    const paste = Uint8Array.from({ length: 1_000_000 }, (_, index) => index % 251);
    input.place({ attachment: 1, from: 0 });
    input.add(paste);
    let received = Buffer.alloc(0);
    while (input.waiting() > 0) {
      const sent = everything(input);
      expect(sent.length).toBeLessThanOrEqual(INPUT_WINDOW_BYTES);
      received = Buffer.concat([received, sent]);
      input.acknowledge(received.length);
    }
    expect(received.equals(paste)).toBe(true);
  });

  it("TERM-10 takes no more than it has room for, and nothing of what does not fit", () => {
    const input = createTerminalInput(4);
    expect(input.add(bytes("123"))).toBe(true);
    expect(input.add(bytes("45"))).toBe(false);
    expect(input.add(bytes("4"))).toBe(true);
    input.place({ attachment: 1, from: 0 });
    expect(textOf(input)).toBe("1234");
    input.acknowledge(2);
    expect(input.add(bytes("56"))).toBe(true);
    expect(textOf(input)).toBe("56");
  });

  it("TERM-10 counts only what a person typed as unconfirmed", () => {
    const input = createTerminalInput(100);
    input.place({ attachment: 1, from: 0 });
    input.add(bytes("ls\n"));
    input.add(bytes("\x04"), { typed: false });
    everything(input);
    expect(input.unconfirmed()).toBe(3);
    input.acknowledge(3);
    expect([input.waiting(), input.unconfirmed()]).toEqual([1, 0]);
  });

  it("TERM-10 does not send twice what may have arrived where the writer was forgotten, and reports it", () => {
    const input = createTerminalInput(100);
    input.place({ attachment: 1, from: 0 });
    input.add(bytes("acknowledged"));
    everything(input);
    input.acknowledge(12);
    input.add(bytes("unknown"));
    everything(input);
    input.disconnect();
    input.place({ attachment: 2, from: 0 });
    input.add(bytes("new"));
    expect(textOf(input)).toBe("new");
    input.acknowledge(3);
    expect(input.unconfirmed()).toBe(7);
  });

  it.for([
    ["a node that does not count", { attachment: 1, from: null }] as const,
    ["an older gateway", undefined] as const,
  ])("TERM-10 goes on with what was not sent yet after a reconnection to %s", ([, place]) => {
    const input = createTerminalInput(100);
    input.place(place);
    input.add(bytes("sent"));
    everything(input);
    input.disconnect();
    input.add(bytes("kept"));
    input.place(place);
    expect(textOf(input)).toBe("kept");
  });
});
