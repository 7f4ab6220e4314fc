import type { TaskResultReport, Verdict } from "@holdfast/contracts/node/protocol";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LinkFailure } from "./failures.ts";
import { createOutbox, takeBatch } from "./outbox.ts";

const result = (id: string, said = "x"): TaskResultReport => ({
  task_id: id,
  generation: 1,
  timings: {},
  outcome: { status: "succeeded", result: { said } },
});

/** A journal and a server in memory. */
function open(post: (results: TaskResultReport[]) => Promise<void> = async () => undefined) {
  const unsent = new Map<string, TaskResultReport>();
  const seen: string[][] = [];
  const failures: string[] = [];
  const refusals: string[][] = [];
  const dropped: string[] = [];
  const outbox = createOutbox({
    journal: {
      unsent: () => [...unsent.values()],
      settled: (ids) => {
        for (const id of ids) unsent.delete(id);
      },
    },
    async post(results) {
      seen.push(results.map((one) => one.task_id));
      await post(results);
      return { verdicts: results.map(({ task_id }) => ({ task_id, verdict: "accepted" as Verdict })) };
    },
    onFailure: ({ reason }) => {
      failures.push(reason);
      return 1;
    },
    onSettled: () => undefined,
    onRefused: (taskIds) => refusals.push(taskIds),
    onDropped: ({ task_id }) => dropped.push(task_id),
  });
  const put = (one: TaskResultReport) => unsent.set(one.task_id, one);
  return { outbox, unsent, put, seen, failures, refusals, dropped };
}

const refused = (status: number) =>
  new LinkFailure({ kind: "answer", status, code: "invalid_request", excerpt: "not so" });

describe("outbox", () => {
  it("TASK-05 delivers everything there is, many together", async () => {
    const { outbox, unsent, put, seen } = open();
    for (let index = 0; index < 70; index += 1) put(result(`t${index}`));
    await outbox.flush(60_000);
    expect(seen.map((batch) => batch.length)).toEqual([32, 32, 6]);
    expect(unsent.size).toBe(0);
  });

  it("AGENT-01 reports before every new attempt what the last one failed by", async () => {
    let attempts = 0;
    const { outbox, unsent, put, failures } = open(async () => {
      attempts += 1;
      if (attempts < 4) throw Object.assign(new Error("gone"), { code: "ECONNRESET" });
    });
    put(result("a"));
    await outbox.flush(60_000);
    expect(unsent.size).toBe(0);
    expect(failures).toEqual(["api_unreachable", "api_unreachable", "api_unreachable"]);
  });

  it.for([429, 500, 503, 401])("TASK-10 keeps the result when the server answers %d", async (status) => {
    const { outbox, unsent, put } = open(async () => {
      throw refused(status);
    });
    put(result("a"));
    await outbox.flush(30);
    outbox.stop();
    expect(unsent.size).toBe(1);
  });

  it("TASK-10 lets no result that the server never takes keep the others back", async () => {
    const { outbox, unsent, put, seen, refusals, dropped } = open(async (results) => {
      if (results.some((one) => one.task_id === "bad")) throw refused(400);
    });
    for (const id of ["a", "bad", "c"]) put(result(id));
    await outbox.flush(60_000);
    expect(seen).toEqual([["a", "bad", "c"], ["a"], ["bad"], ["bad"], ["c"]]);
    expect(refusals, "AGENT-01: one before each new attempt").toEqual([["a", "bad", "c"], ["bad"]]);
    expect(dropped).toEqual(["bad"]);
    expect(unsent.size).toBe(0);
  });

  it("TASK-10 tells the server in place of a result that it refuses by its form", async () => {
    const posted: TaskResultReport[] = [];
    const { outbox, put, dropped } = open(async ([one]) => {
      if (one?.outcome.status === "succeeded") throw refused(413);
      if (one) posted.push(one);
    });
    put(result("big"));
    await outbox.flush(60_000);
    expect(posted).toMatchObject([
      { task_id: "big", outcome: { status: "failed", failure: { code: "result_invalid" } } },
    ]);
    expect(dropped).toEqual([]);
  });

  it("TASK-05 delivers what the journal could not take, from memory", async () => {
    const { outbox, seen } = open();
    outbox.volatile.add(result("volatile"));
    expect(outbox.volatile.held()).toEqual([{ task_id: "volatile", generation: 1 }]);
    await outbox.flush(60_000);
    outbox.poke();
    expect(seen).toEqual([["volatile"]]);
  });

  it("TASK-04 puts as many into a request as fit, and always at least one", () => {
    const sizes = fc.array(fc.nat(200), { minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(
        sizes,
        fc.integer({ min: 1, max: 10 }),
        fc.integer({ min: 1, max: 2_000 }),
        (lengths, most, mostBytes) => {
          const all = lengths.map((length, index) => result(`t${index}`, "x".repeat(length)));
          const batch = takeBatch(all, { most, mostBytes });
          expect(batch).toEqual(all.slice(0, batch.length));
          expect(batch.length).toBeGreaterThan(0);
          expect(batch.length).toBeLessThanOrEqual(most);
          if (batch.length > 1) expect(JSON.stringify(batch).length).toBeLessThanOrEqual(mostBytes + 2);
        },
      ),
    );
  });
});
