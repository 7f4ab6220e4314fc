import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createLiveOutput, type Piece } from "./live-output.ts";

describe("live output", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  function open(isConnected = true) {
    const state = { isConnected };
    const sent: Piece[] = [];
    const live = createLiveOutput((piece) => state.isConnected && sent.push(piece) > 0);
    return { state, sent, live };
  }

  it("EXEC-02 gathers small writes, and keeps the order between the streams", () => {
    const { sent, live } = open();
    for (const text of ["a", "b"]) live.add("stdout", text);
    live.add("stderr", "c");
    live.add("stdout", "d");
    live.add("stdout", "");
    expect(sent).toEqual([]);
    vi.runAllTimers();
    expect(sent).toEqual([
      { seq: 1, stream: "stdout", text: "ab" },
      { seq: 2, stream: "stderr", text: "c" },
      { seq: 3, stream: "stdout", text: "d" },
    ]);
  });

  it("EXEC-02 does not wait with what is large", () => {
    const { sent, live } = open();
    live.add("stdout", "x".repeat(20_000));
    expect(sent).toMatchObject([{ seq: 1 }]);
  });

  it("EXEC-04 waits while there is no connection, and goes on where it was", () => {
    const { state, sent, live } = open(false);
    live.add("stdout", "a");
    vi.runAllTimers();
    live.add("stdout", "b");
    vi.runAllTimers();
    expect(sent).toEqual([]);
    state.isConnected = true;
    live.flush();
    expect(sent.map(({ seq, text }) => `${seq}${text}`)).toEqual(["1a", "2b"]);
  });

  it("EXEC-02 ends with all of it, and is silent afterwards", () => {
    const { state, sent, live } = open();
    live.add("stdout", "a");
    live.end();
    expect(sent).toHaveLength(1);
    state.isConnected = false;
    live.add("stdout", "b");
    live.end();
    state.isConnected = true;
    live.flush();
    expect(sent).toHaveLength(1);
  });
});
