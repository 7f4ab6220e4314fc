import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { createDialling } from "./dialling.ts";

describe("dialling", () => {
  it("AGENT-09 lets a few dial at a time, in their order, and the next when one has ended", async () => {
    const myTurn = createDialling(2);
    const begun: number[] = [];
    const ends = new Map<number, () => void>();
    for (let number = 1; number <= 5; number += 1) {
      void myTurn().then((end) => {
        begun.push(number);
        ends.set(number, end);
      });
    }
    await turn();
    expect(begun).toEqual([1, 2]);
    ends.get(2)?.();
    // Said twice, it is still one that has ended.
    ends.get(2)?.();
    await turn();
    await turn();
    expect(begun).toEqual([1, 2, 3]);
    ends.get(1)?.();
    ends.get(3)?.();
    await turn();
    await turn();
    expect(begun).toEqual([1, 2, 3, 4, 5]);
  });
});
