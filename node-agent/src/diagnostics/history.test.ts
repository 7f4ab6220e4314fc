import type { DiagnosticRecord } from "@holdfast/contracts/node/protocol";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createHistory } from "./history.ts";

const MINUTE_MS = 60_000;

function openHistory() {
  const kept: DiagnosticRecord[] = [];
  const sent: number[][] = [];
  const history = createHistory({
    diagnostics: {
      record(reason, detail) {
        const seq = kept.length;
        kept.push({ seq, at: "2030-01-01T00:00:00Z", reason, detail, instance_id: "", correlation_id: null });
        return null;
      },
      newerThan: (seq) => kept.filter((one) => one.seq > seq),
    },
    async send(records) {
      sent.push(records.map(({ seq }) => seq));
      return { seq: records.at(-1)?.seq ?? -1 };
    },
  });
  return { history, sent };
}

describe("the history of a host", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("AGENT-01 is sent soon while the server can be reached", async () => {
    const { history, sent } = openHistory();
    history.connected(true);
    history.record("process_alive", "one");
    history.record("process_alive", "another");
    await vi.advanceTimersByTimeAsync(MINUTE_MS);
    expect(sent).toEqual([[0, 1]]);
  });

  it("AGENT-02 costs no request of its own when the connection fails, and is sent when it is back", async () => {
    const { history, sent } = openHistory();
    history.connected(true);
    history.record("edge_rate_limited", "HTTP 429");
    history.connected(false);
    history.record("edge_rate_limited", "again");
    await vi.advanceTimersByTimeAsync(MINUTE_MS);
    expect(sent).toEqual([]);
    history.connected(true);
    history.upload();
    history.record("process_alive", "connected");
    await vi.advanceTimersByTimeAsync(MINUTE_MS);
    expect(sent.flat()).toEqual([0, 1, 2]);
  });
});
