// The table of a task's life, and the SQL that must do what it says: every status and every event is
// tried on a real row.

import { type TaskStatus, taskStatuses } from "@holdfast/contracts/endpoints/tasks";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import {
  lapsed,
  type Outcome,
  RESULT_GRACE_SECONDS,
  type TaskEvent,
  taskEvents,
  taskTable,
} from "../src/tasks/state.ts";
import { sweepTasks } from "../src/tasks/sweep.ts";
import { atOnce, ended, openTaskLab, type Replica, succeeded, type TaskLab } from "./support/tasks.ts";

let lab: TaskLab;
let replica: Replica;

beforeAll(async () => {
  lab = await openTaskLab();
  replica = await lab.newReplica();
});

const nobody = { publish: () => undefined };

describe("the table", () => {
  it("TASK-06 ends every task for good: no event leads out of an end", () => {
    for (const status of ["completed", "failed", "expired", "cancelled"] as const) {
      for (const event of taskEvents) expect(taskTable[status][event]).not.toHaveProperty("to");
    }
  });

  it("TASK-04 completes and fails tasks by results only", () => {
    for (const status of taskStatuses) {
      for (const event of taskEvents) {
        const outcome = taskTable[status][event];
        if (typeof outcome === "string" || !["completed", "failed"].includes(outcome.to)) continue;
        expect(event).toMatch(/^result_/);
      }
    }
    expect(taskTable.queued.result_succeeded).toEqual({ to: "completed" });
  });
});

/** A row in the status, as the engine would have left it. */
async function rowIn(status: TaskStatus): Promise<{ nodeId: string; id: string }> {
  const nodeId = await lab.newNode();
  const { id } = await lab.enqueue(replica, { nodeId });
  const report = async (...reports: Parameters<Replica["engine"]["results"]>[1]) => {
    await replica.engine.wait(nodeId, atOnce());
    await replica.engine.results(nodeId, reports);
  };
  if (status === "dispatched") await replica.engine.wait(nodeId, atOnce());
  if (status === "completed") await report(succeeded(id, 1));
  if (status === "failed") await report(ended(id, 1, "failed"));
  if (status === "cancelled") await lab.cancel(replica, id);
  if (status === "expired") {
    await lab.superuser`UPDATE tasks SET expires_at = now() WHERE id = ${id}`;
    await sweepTasks(lab.system, nobody);
  }
  expect((await lab.row(id)).status).toBe(status);
  return { nodeId, id };
}

/** Makes it happen by the same doors that production uses. Answers what the node was told, if anything. */
async function happen(
  event: TaskEvent,
  { nodeId, id }: { nodeId: string; id: string },
): Promise<string | undefined> {
  const holding = [{ task_id: id, generation: 1 }];
  // A delivery that a crash may have undone.
  const newest = (await lab.row(id)).generation + 1;
  const set = async (change: "expires_at" | "lease_until" | "cancel_requested_at") => {
    await lab.superuser`
      UPDATE tasks SET ${lab.superuser(change)} = now()
      WHERE id = ${id} AND (${change} <> 'lease_until' OR status = 'dispatched')`;
  };
  switch (event) {
    case "claim":
      return (await replica.engine.wait(nodeId, atOnce())).tasks[0]?.task_id && "offered";
    case "hold":
      return (await replica.engine.renewLeases(nodeId, holding)).cancel[0] && "stop";
    case "result_succeeded":
      return (await replica.engine.results(nodeId, [succeeded(id, newest)]))[0]?.verdict;
    case "result_failed":
      return (await replica.engine.results(nodeId, [ended(id, newest, "failed")]))[0]?.verdict;
    case "result_cancelled":
      return (await replica.engine.results(nodeId, [ended(id, newest, "cancelled", "task_cancelled")]))[0]
        ?.verdict;
    case "cancel":
      await lab.cancel(replica, id);
      if ((await lab.row(id)).status !== "dispatched") return undefined;
      return (await replica.engine.renewLeases(nodeId, holding)).cancel[0] && "stop";
    case "requeue":
      await set("lease_until");
      await sweepTasks(lab.system, nobody);
      return undefined;
    case "give_up":
      // Without a lease nobody waits for the node: a cancel has ended a queued task at once.
      await set("lease_until");
      if ((await lab.row(id)).status === "dispatched") await set("cancel_requested_at");
      await sweepTasks(lab.system, nobody);
      return undefined;
    case "expire":
      await set("lease_until");
      await set("expires_at");
      await sweepTasks(lab.system, nobody);
      return undefined;
  }
}

const cells = taskStatuses.flatMap((status) => taskEvents.map((event) => ({ status, event })));

describe("the SQL", () => {
  it.each(cells)("TASK-06 does what the table says: $status, $event", async ({ status, event }) => {
    const task = await rowIn(status);
    const before = await lab.row(task.id);
    if (event === "hold" && status === "dispatched") {
      await lab.superuser`UPDATE tasks SET lease_until = now() WHERE id = ${task.id}`;
    }
    const told = await happen(event, task);
    const after = await lab.row(task.id);
    const outcome: Outcome = taskTable[status][event];
    if (typeof outcome === "object") {
      expect(after.status).toBe(outcome.to);
      expect(after.revision).toBeGreaterThan(before.revision);
      return;
    }
    expect(after.status).toBe(status);
    switch (outcome) {
      case "renewed":
        expect(after.generation).toBe(before.generation);
        expect(after.lease_until?.getTime()).toBeGreaterThan(Date.now() + 30_000);
        break;
      case "asked_to_stop":
        expect(told).toBe("stop");
        break;
      case "late":
        expect(told).toBe("late");
        expect(after).toEqual(before);
        expect(await lab.superuser`SELECT FROM late_results WHERE task_id = ${task.id}`).toHaveLength(1);
        break;
      case "nothing":
        expect(told).toBeUndefined();
        expect({ ...after, expires_at: 0 }).toEqual({ ...before, expires_at: 0 });
        break;
    }
  });
});

describe("a lapsed lease", () => {
  const arbitrary = fc.record({
    type: fc.constantFrom("test.repeat", "test.once"),
    cancelRequested: fc.boolean(),
    // Around the borders: its time is over; its last word is too late.
    expiresIn: fc.constantFrom(
      -1_000,
      -30 - RESULT_GRACE_SECONDS - 30,
      -30 - RESULT_GRACE_SECONDS + 30,
      -30,
      30,
      1_000,
    ),
  });

  it("TASK-06 means the same to the sweeper as to the table", async () => {
    const nodeId = await lab.newNode();
    await fc.assert(
      fc.asyncProperty(arbitrary, async ({ type, cancelRequested, expiresIn }) => {
        const { id } = await lab.enqueue(replica, { nodeId, type });
        await replica.engine.wait(nodeId, atOnce());
        await lab.superuser`
          UPDATE tasks SET lease_until = now(), expires_at = now() + ${expiresIn} * interval '1 second',
            cancel_requested_at = CASE WHEN ${cancelRequested} THEN now() END
          WHERE id = ${id}`;
        const row = await lab.row(id);
        const facts = {
          idempotent: type === "test.repeat",
          cancelRequested,
          expiresAt: row.expires_at,
          timeoutSeconds: 30,
        };
        const event = lapsed(facts, new Date());
        await sweepTasks(lab.system, nobody);
        const outcome = event === undefined ? undefined : taskTable.dispatched[event];
        const expected = typeof outcome === "object" ? outcome.to : "dispatched";
        expect((await lab.row(id)).status).toBe(expected);
        await lab.superuser`DELETE FROM tasks WHERE id = ${id}`;
      }),
      { numRuns: 60 },
    );
  });
});
