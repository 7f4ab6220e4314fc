import type { AgentFrame } from "@holdfast/contracts/execution/frames";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { openMemoryJournal } from "../journal/in-memory.ts";
import { createLog } from "../log.ts";
import { createDeliveries, type ExecutionReport } from "./deliveries.ts";
import { createExecutions } from "./executions.ts";

describe("a result that is not acknowledged", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const requestId = "run:step:1";
  const result = { type: "execute_result", requestId, generation: 1, status: "succeeded", output: "done" };

  /** One step has ended. The link takes its frames, and whether they arrive is not known. */
  async function ended() {
    const link = { isReady: true };
    const sent: AgentFrame[] = [];
    const journal = openMemoryJournal<ExecutionReport>();
    const expires_at = new Date(Date.now() + 600_000).toISOString();
    const claim = { type: "connector.action", expires_at, idempotent: false, resultBytes: 1000 };
    journal.claimed({ task_id: requestId, generation: 1, ...claim });
    await journal.started(requestId);
    const done = { status: "succeeded", output: "done" } as const;
    await journal.result({ task_id: requestId, generation: 1, result: done });
    const newest = {
      isReady: () => link.isReady,
      send: (frame: AgentFrame) => link.isReady && sent.push(frame) > 0,
    };
    const resend = { firstMs: 10_000, maxMs: 40_000 };
    const deliveries = createDeliveries({ journal, newest: () => newest, random: () => 1, resend });
    const executions = createExecutions({
      ...{ journal, deliveries, maxInFlight: 1, onEnded: () => undefined, secretsOf: () => [] },
      prepare: () => expect.unreachable("nothing is run here"),
      log: createLog({ level: "error", write: () => undefined, journald: false }),
    });
    const acknowledge = () =>
      executions.acknowledged({ type: "result_ack", requestId, generation: 1, verdict: "accepted" });
    return { link, sent, deliveries, acknowledge };
  }

  it("EXEC-04 is sent again by the same connection after growing pauses, until it is acknowledged", async () => {
    const { sent, deliveries, acknowledge } = await ended();
    expect(vi.getTimerCount()).toBe(0);
    deliveries.sendResult(requestId);
    const counts = [10_000, 20_000, 40_000, 40_000].flatMap((pause) => {
      vi.advanceTimersByTime(pause - 1);
      const before = sent.length;
      vi.advanceTimersByTime(1);
      return [before, sent.length];
    });
    expect(counts).toEqual([1, 2, 2, 3, 3, 4, 4, 5]);
    expect(sent).toEqual(Array(5).fill(result));
    acknowledge();
    expect(vi.getTimerCount()).toBe(0);
  });

  it("EXEC-04 waits for the next connection when there is none, with one timer at most", async () => {
    const { link, sent, deliveries } = await ended();
    deliveries.sendResult(requestId);
    link.isReady = false;
    vi.advanceTimersByTime(10_000);
    expect([sent.length, vi.getTimerCount()]).toEqual([1, 0]);
    link.isReady = true;
    deliveries.sendWaiting();
    deliveries.sendWaiting();
    expect([sent.length, vi.getTimerCount()]).toEqual([3, 1]);
    deliveries.stop();
    expect(vi.getTimerCount()).toBe(0);
  });
});
