// Agents that end while a task runs and start again on the same journal, without processes: what is journalled decides.

import type { Outcome, TaskOffer } from "@holdfast/contracts/node/protocol";
import { canonicalJson } from "@holdfast/kit/canonical-json";
import { signDetached } from "@holdfast/kit/detached-jws";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { newSigningKey } from "../../test/support/fake-api.ts";
import { faultyDisk } from "../../test/support/faulty-disk.ts";
import { gate, loaderOf, testType } from "../../test/support/test-types.ts";
import { verifierKeyring } from "../identity/agent-file.ts";
import { journalOn } from "../journal/journal.ts";
import { createExecutor } from "./executor.ts";
import type { LoadedType } from "./run.ts";

const key = newSigningKey("k");
const nodeId = "01a1e13c-bc3d-71c5-9b58-aada3c2346d4";
const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const host = {
  stateDir: "/nowhere",
  profile: { name: "p", version: 1, endpoints: {}, resolve: {}, ca_sha256: [] },
  capabilities: [],
  account: "me",
  terminals: {
    open: () => Promise.reject(new Error("there are no terminals in this test")),
    recover: async () => undefined,
  },
};
const forever = () => new Promise<never>(() => undefined);

function offer(number: number, changes: Partial<TaskOffer> = {}): TaskOffer {
  const task = {
    task_id: `01a1e13c-bc3d-71c5-9b58-${String(number).padStart(12, "0")}`,
    task_type: "test.one",
    params: {},
    expires_at: "2099-01-01T00:00:00.000Z",
  };
  const signature = signDetached(key, canonicalJson({ ...task, node_id: nodeId }));
  return { ...task, generation: 1, correlation_id: "c", signature, ...changes };
}

/** A disk that agents start on, one after the other. What was not synced is lost in between. */
function machine() {
  let disk = faultyDisk(512 * 1024);
  const start = (type: LoadedType) => {
    // The earlier agent is gone: nothing that it was about to do happens.
    disk.losePowerAt(1);
    disk = faultyDisk(disk.imagesAfter(() => ({ kind: "lost" })));
    const journal = journalOn(disk, { directory: "disk", now: Date.now });
    const ready = gate();
    const executor = createExecutor({
      ...{ nodeId, journal, host: () => host, log: quiet },
      loadType: loaderOf({ "test.one": type }),
      verifiers: () => verifierKeyring({ keys: [key.jwk] }),
      refreshVerifiers: async () => {},
      now: Date.now,
      skewSeconds: () => 0,
      sendProgress: async () => ({ cancel: false }),
      resultReady: ready.open,
      volatile: { add() {}, held: () => [] },
      record() {},
      count() {},
    });
    const outcomes = () => journal.unsent().map(({ outcome }) => outcome);
    const outcome = async () => {
      await ready.passed;
      return outcomes()[0];
    };
    return { journal, executor, outcomes, outcome };
  };
  return { start };
}

/** An agent ended while the task ran; the next one starts with this type. */
async function restarted(executor: LoadedType["executor"], declared: Partial<LoadedType["contract"]> = {}) {
  const { start } = machine();
  const began = gate();
  const hanging = testType(
    () => {
      began.open();
      return forever();
    },
    { idempotent: false, ...declared },
  );
  start(hanging).executor.offer([offer(1)]);
  await began.passed;
  let runs = 0;
  const run = () => {
    runs += 1;
    return forever();
  };
  const type = testType(run, { idempotent: false, ...declared }, executor);
  return { ...start(type), start: () => start(type), runs: () => runs };
}

const recovering = (recover: NonNullable<LoadedType["executor"]["recover"]>) =>
  ({ recover }) as LoadedType["executor"];
const withCode = (status: Outcome["status"], code: string) => ({ status, failure: { code } });

describe("a task that an earlier agent started", () => {
  it("TASK-05 is interrupted when its type cannot recover", async () => {
    const agent = await restarted({} as LoadedType["executor"]);
    expect(await agent.outcome()).toMatchObject(withCode("interrupted", "task_interrupted"));
    expect(agent.runs()).toBe(0);
  });

  it("TASK-05 is finished by its type, which is given the task's id and not its params", async () => {
    const recovered: unknown[] = [];
    const agent = await restarted(
      recovering(async (task) => {
        recovered.push(task);
        return { said: "finished" };
      }),
    );
    expect(await agent.outcome()).toEqual({ status: "succeeded", result: { said: "finished" } });
    expect(recovered).toEqual([expect.objectContaining({ taskId: offer(1).task_id, host })]);
    expect(recovered[0]).not.toHaveProperty("params");
    expect(agent.runs()).toBe(0);
  });

  it.for([
    ["undone: it is interrupted", async () => undefined, withCode("interrupted", "task_interrupted")],
    ["finished with a wrong form", async () => ({ said: 1 }), withCode("failed", "result_invalid")],
    [
      "reported by a failure of its type",
      ({ fail }: { fail: (code: string) => Error }) => Promise.reject(fail("disk_on_fire")),
      withCode("failed", "disk_on_fire"),
    ],
    [
      "interrupted when recovering breaks down",
      () => Promise.reject(new Error("no idea")),
      {
        status: "interrupted",
        failure: { code: "task_interrupted", message: expect.stringContaining("no idea") },
      },
    ],
  ] as const)("TASK-05 is %s", async ([, recover, expected]) => {
    const agent = await restarted(recovering(recover as never));
    expect(await agent.outcome()).toMatchObject(expected);
    expect(agent.runs()).toBe(0);
  });

  it("TASK-05 has room for its whole result, however full the journal has become", async () => {
    const result = { said: "x".repeat(60_000) };
    const agent = await restarted(
      recovering(async () => result),
      { resultBytes: 64 * 1024 },
    );
    // Claims only, because their room is all that could be missing.
    for (let at = 10; agent.journal.roomFor(1024) > 0; at += 1) {
      const { task_id, generation, task_type: type, expires_at } = offer(at);
      agent.journal.claimed({ task_id, generation, type, expires_at, idempotent: true, resultBytes: 1024 });
    }
    expect(await agent.outcome()).toEqual({ status: "succeeded", result });
  });

  it("TASK-05 is held while it recovers, and its result is for the newest offer of it", async () => {
    const door = gate();
    const agent = await restarted(
      recovering(async () => {
        await door.passed;
        return { said: "finished" };
      }),
    );
    expect(agent.executor.holding()).toEqual([{ task_id: offer(1).task_id, generation: 1 }]);
    expect(agent.executor.running()).toBe(1);
    expect(agent.executor.offer([offer(1, { generation: 3 })])).toBe(0);
    door.open();
    await agent.outcome();
    expect(agent.journal.unsent()).toMatchObject([{ generation: 3, outcome: { status: "succeeded" } }]);
    expect(agent.runs()).toBe(0);
  });

  it("TASK-05 is recovered again when the agent stops meanwhile", async () => {
    let recoveries = 0;
    const began = gate();
    const agent = await restarted(
      recovering(async ({ signal }) => {
        recoveries += 1;
        if (recoveries > 1) return { said: "finished" };
        began.open();
        return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      }),
    );
    await began.passed;
    await agent.executor.stop(0);
    expect(agent.outcomes()).toEqual([]);
    expect(await agent.start().outcome()).toMatchObject({ status: "succeeded" });
    expect(recoveries).toBe(2);
  });

  it("TASK-09 stops recovering when it is cancelled", async () => {
    const began = gate();
    const agent = await restarted(
      recovering(({ signal }) => {
        began.open();
        return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      }),
    );
    await began.passed;
    expect(agent.executor.cancel([offer(1).task_id])).toBe(1);
    expect(agent.executor.cancel([offer(1).task_id])).toBe(0);
    expect(await agent.outcome()).toMatchObject({ status: "interrupted" });
  });

  it("TASK-05 runs once, whatever is offered and however often agents end", async () => {
    const step = fc.constantFrom("offer", "restart", "finish" as const);
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), fc.boolean(), async (steps, recovers) => {
        let runs = 0;
        let finish = gate();
        let starts = 0;
        const { start } = machine();
        const startAgent = () => {
          starts += 1;
          const mine = starts;
          const run = async () => {
            // An agent that is gone in this test still has promises that resolve.
            if (mine !== starts) return forever();
            runs += 1;
            await finish.passed;
            return { said: "done" };
          };
          const recover = async () => ({ said: "recovered" });
          return start(testType(run, { idempotent: false }, recovers ? { recover } : {}));
        };
        let agent = startAgent();
        for (const [at, what] of steps.entries()) {
          if (what === "offer") agent.executor.offer([offer(1, { generation: at + 1 })]);
          if (what === "finish") finish.open();
          if (what === "restart") {
            finish = gate();
            agent = startAgent();
          }
          await new Promise((resolve) => setImmediate(resolve));
        }
        expect(runs).toBeLessThanOrEqual(1);
      }),
      { numRuns: 60 },
    );
  });
});
