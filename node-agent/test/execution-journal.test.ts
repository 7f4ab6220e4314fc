// Steps over a disk that loses power at any moment, tears writes and refuses them. The rule: a step that may have run is known
// afterwards, and never runs again.

import { randomUUID } from "node:crypto";
import type { AgentFrame } from "@holdfast/contracts/execution/frames";
import { describe, expect, it } from "vitest";
import { createDeliveries, type ExecutionReport } from "../src/execution/deliveries.ts";
import { createExecutions } from "../src/execution/executions.ts";
import type { SignedExecute } from "../src/execution/frames.generated.ts";
import { journalOn } from "../src/journal/journal.ts";
import type { Storage } from "../src/journal/storage.ts";
import { createLog } from "../src/log.ts";
import { type Fate, type FaultyDisk, faultyDisk } from "./support/faulty-disk.ts";

const CAPACITY = 64 * 1024;
const start = Date.parse("2026-01-01T00:00:00Z");
const judgement = { authentic: true, refused: undefined };

function dispatch(more: Partial<SignedExecute> = {}): SignedExecute {
  return {
    ...{ type: "execute", requestId: "run:node:1", generation: 1, kind: "agent.execute", payload: {} },
    ...{ agentId: randomUUID(), organizationId: randomUUID(), userId: randomUUID(), signature: "" },
    ...{ expiresAt: "2026-01-01T00:01:00.000Z", timeoutMs: 60_000 },
    ...more,
  };
}

/** An agent's part with the journal. `runs` outlives it, as what a step has done does. */
function agentOn(disk: Storage, runs: string[], clock = { now: start }) {
  const sent: AgentFrame[] = [];
  const link = { isReady: () => true, send: (frame: AgentFrame) => sent.push(frame) > 0 };
  const journal = journalOn<ExecutionReport>(disk, { directory: "the test", now: () => clock.now });
  const executions = createExecutions({
    journal,
    deliveries: createDeliveries({ journal, newest: () => link, random: Math.random }),
    maxInFlight: 10,
    prepare: ({ requestId }) => ({
      ...{ pure: false, outputBytes: 1000 },
      run: async () => {
        runs.push(requestId);
        return { status: "succeeded", output: "done" };
      },
    }),
    secretsOf: () => [],
    onEnded: () => undefined,
    log: createLog({ write: () => undefined }),
  });
  const of = <T extends AgentFrame["type"]>(type: T) => sent.filter((frame) => frame.type === type);
  return {
    journal,
    executions,
    link,
    sent,
    of,
    offer: (frame: SignedExecute) => executions.offered(frame, judgement, link),
  };
}

const fates: Fate[] = [
  { kind: "kept" },
  { kind: "lost" },
  { kind: "torn", share: 0.5 },
  { kind: "torn", share: 0.99 },
  { kind: "garbage", share: 0.3 },
];

/** To the end of the request, or of the power. */
async function work(disk: FaultyDisk, runs: string[]) {
  const agent = agentOn(disk, runs);
  agent.offer(dispatch());
  await agent.executions.drain();
  const { requestId } = dispatch();
  if (agent.of("execute_result").length > 0) {
    agent.executions.acknowledged({ type: "result_ack", requestId, generation: 1, verdict: "accepted" });
  }
  return agent;
}

describe("the journal of steps", () => {
  it("EXEC-02 knows every step that may have run, wherever the power goes and whatever becomes of unsynced writes", async () => {
    const whole = faultyDisk(CAPACITY);
    await work(whole, []);
    expect(whole.steps).toBeGreaterThan(5);
    const found = new Set<string>();
    for (let step = 1; step <= whole.steps; step += 1) {
      for (const fate of fates) {
        const disk = faultyDisk(CAPACITY);
        const runs: string[] = [];
        disk.losePowerAt(step);
        const before = await work(disk, runs).catch(() => undefined);
        const accepted = (before?.of("accepted").length ?? 0) > 0;

        const after = agentOn(faultyDisk(disk.imagesAfter(() => fate)), runs);
        // As the control plane does with what `hello` does not hold.
        const known = after.journal.stateOf("run:node:1");
        if (known === "unknown" && (before?.of("execute_result").length ?? 0) === 0)
          after.offer(dispatch({ generation: 2 }));
        await after.executions.drain();
        await after.journal.close();
        await new Promise((resolve) => setImmediate(resolve));
        const about = `step ${step}, ${JSON.stringify(fate)}, ${known}`;
        expect(runs.length, about).toBeLessThanOrEqual(1);
        if (accepted) expect(known, about).not.toBe("unknown");
        const [result] = after.of("execute_result") as { error?: string }[];
        const wasInterrupted = known === "unsent" && result?.error?.includes("the agent was restarted");
        found.add(wasInterrupted ? "interrupted" : known);
      }
    }
    expect(found).toEqual(new Set(["unknown", "interrupted", "unsent", "settled"]));
  });

  it("EXEC-02 lets another agent run what it could not write down, and runs it itself when it is given again", async () => {
    const disk = faultyDisk(CAPACITY);
    let failing = false;
    const failed = new Error("EIO: the disk is broken");
    const flaky: Storage = { ...disk, sync: (file) => (failing ? Promise.reject(failed) : disk.sync(file)) };
    const runs: string[] = [];
    const clock = { now: start };
    const agent = agentOn(flaky, runs, clock);
    failing = true;
    agent.offer(dispatch());
    await agent.executions.drain();
    expect([runs, agent.of("accepted")]).toEqual([[], []]);
    expect(agent.of("declined")).toMatchObject([{ generation: 1, reason: expect.stringContaining("EIO") }]);
    expect(agent.journal.stateOf("run:node:1")).toBe("unknown");

    failing = false;
    clock.now += 2000;
    const again = agentOn(flaky, runs, clock);
    again.offer(dispatch({ generation: 2 }));
    await again.executions.drain();
    expect(runs).toEqual(["run:node:1"]);
    expect(again.of("execute_result")).toMatchObject([{ generation: 2, status: "succeeded" }]);
  });

  it("EXEC-02 declines while nothing can be written, and sends a result that could not be", async () => {
    const disk = faultyDisk(CAPACITY);
    const runs: string[] = [];
    const clock = { now: start };
    const agent = agentOn(disk, runs, clock);
    disk.failWith(new Error("ENOSPC"));
    agent.offer(dispatch());
    expect(agent.of("declined")).toMatchObject([
      { reason: expect.stringContaining("could not write to its journal: ENOSPC") },
    ]);
    agent.offer(dispatch({ generation: 2 }));
    expect(agent.of("declined")).toHaveLength(2);
    disk.failWith(undefined);
    clock.now += 2000;
    agent.offer(dispatch({ generation: 3 }));

    await expect.poll(() => agent.of("execute_result")).toMatchObject([{ generation: 3 }]);
    expect(runs).toHaveLength(1);
  });

  it("EXEC-02 drops what never started, also for whoever reads it later", async () => {
    const disk = faultyDisk(CAPACITY);
    const { journal } = agentOn(disk, []);
    const claim = { task_id: "a", generation: 1, type: "agent.execute", idempotent: false, resultBytes: 10 };
    journal.claimed({ ...claim, expires_at: "2026-01-01T00:01:00.000Z" });
    await journal.started("a");
    journal.dropped("a");
    journal.dropped("unknown");
    expect([journal.stateOf("a"), journal.held()]).toEqual(["unknown", []]);
    const { journal: later } = agentOn(faultyDisk(disk.imagesAfter(() => ({ kind: "kept" }))), []);
    expect([later.stateOf("a"), later.interrupted()]).toEqual(["unknown", []]);
  });

  it("EXEC-02 remembers requests until two minutes after they expire", async () => {
    const clock = { now: start };
    const agent = agentOn(faultyDisk(CAPACITY), [], clock);
    agent.offer(dispatch());
    await agent.executions.drain();
    agent.executions.acknowledged({
      type: "result_ack",
      requestId: "run:node:1",
      generation: 1,
      verdict: "accepted",
    });
    clock.now = Date.parse("2026-01-01T00:02:59Z");
    expect(agent.journal.stateOf("run:node:1")).toBe("settled");
    clock.now = Date.parse("2026-01-01T00:03:00Z");
    expect(agent.journal.stateOf("run:node:1")).toBe("unknown");
  });
});
