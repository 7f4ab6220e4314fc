// What events say about attempts.

import type { RunEventEntry } from "@holdfast/contracts/endpoints/runs";
import { describe, expect, it } from "vitest";
import { attemptsOf, tookMs } from "./timeline.ts";

const at = (second: number) => new Date(second * 1000).toISOString();
let seq = 0;
const event = (
  second: number,
  type: string,
  attempt: number,
  data: Record<string, unknown> = {},
): RunEventEntry => ({
  ...{ seq: ++seq, at: at(second), type, node: "deploy", attempt, data },
});

describe("the attempts of a step", () => {
  const failure = { code: "http_failed", message: "refused" };
  const events = [
    { ...event(0, "run_started", 1), node: null, attempt: null },
    event(1, "node_started", 1, { input: { url: "x" } }),
    event(3, "node_retried", 1, { failure, notBefore: at(9) }),
    event(10, "node_started", 2, { input: null }),
    event(11, "node_dispatched", 2, { requestId: "run:deploy:2" }),
  ];

  it("DASH-06 carry their times, input, request and failure", () => {
    expect(attemptsOf(events).get("deploy")).toEqual([
      {
        ...{ attempt: 1, startedAt: at(1), endedAt: at(3), input: { url: "x" }, failure },
        ...{ requestId: undefined, until: null, notBefore: at(9) },
      },
      {
        ...{ attempt: 2, startedAt: at(10), endedAt: null, input: null, failure: null },
        ...{ requestId: "run:deploy:2", until: null, notBefore: null },
      },
    ]);
  });

  it("DASH-06 take as long as all of them together, and grow while one runs", () => {
    const attempts = attemptsOf(events).get("deploy") ?? [];
    expect(tookMs(attempts, 14_000)).toBe(2_000 + 4_000);
    expect(tookMs([], 14_000)).toBeUndefined();
  });
});
