import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createResultWait } from "./result-wait.ts";

const FIRST_MS = 5;

describe("the next poll", () => {
  let counts = { held: 0, unsent: 0 };
  const start = () => {
    const wait = createResultWait(() => counts);
    const goesOn = vi.fn();
    void wait.sent(FIRST_MS).then(goesOn);
    return { wait, goesOn };
  };
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("TASK-02 goes on at once when nothing is held, and as soon as everything is settled", async () => {
    counts = { held: 0, unsent: 0 };
    const idle = start();
    await vi.advanceTimersByTimeAsync(0);
    expect(idle.goesOn).toHaveBeenCalled();
    counts = { held: 2, unsent: 2 };
    const { wait, goesOn } = start();
    counts = { held: 1, unsent: 1 };
    wait.settled();
    await vi.advanceTimersByTimeAsync(0);
    expect(goesOn).not.toHaveBeenCalled();
    counts = { held: 0, unsent: 0 };
    wait.settled();
    await vi.advanceTimersByTimeAsync(0);
    expect(goesOn).toHaveBeenCalled();
  });

  it("TASK-02 does not wait for a task that takes longer", async () => {
    counts = { held: 2, unsent: 1 };
    const { goesOn } = start();
    await vi.advanceTimersByTimeAsync(FIRST_MS);
    expect(goesOn).toHaveBeenCalled();
  });

  it("TASK-02 waits while results are on their way to a busy server, but only for a limited time", async () => {
    counts = { held: 1, unsent: 1 };
    const { goesOn } = start();
    await vi.advanceTimersByTimeAsync(4_000);
    expect(goesOn).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(2_000);
    expect(goesOn).toHaveBeenCalled();
  });

  it("TASK-02 does not wait for a result that could not be delivered now", async () => {
    counts = { held: 1, unsent: 1 };
    const { wait, goesOn } = start();
    await vi.advanceTimersByTimeAsync(500);
    wait.postponed();
    await vi.advanceTimersByTimeAsync(0);
    expect(goesOn).toHaveBeenCalled();
  });
});
