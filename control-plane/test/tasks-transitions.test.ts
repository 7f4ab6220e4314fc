// The transition table of tasks, executed: every event is made to happen to a real row in every status, and what comes
// of it is compared with a table that is written down here, apart from the one that the statements are built from.

import { type TaskStatus, taskStatuses } from "@holdfast/contracts/endpoints/tasks";
import type { Verdict } from "@holdfast/contracts/node/protocol";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { atOnce, ended, openTaskLab, type Replica, succeeded, type TaskLab } from "../../testkit/api/tasks.ts";
import { sweepTasks } from "../src/tasks/sweep.ts";
import { RESULT_GRACE_SECONDS } from "../src/tasks/transitions/expire.ts";
import { openStatuses, type TaskEvent, taskEvents, taskTable } from "../src/tasks/transitions/table.ts";

let lab: TaskLab;
let replica: Replica;

beforeAll(async () => {
  lab = await openTaskLab();
  replica = await lab.newReplica();
});

const nobody = { publish: () => undefined };

/** A status that is the row's next one; or `renewed`, `stop`, `late`, `dup`; `-` for nothing, `x` where no row can be. */
const expected: Record<TaskEvent, string> = {
  //                  queued      dispatched  completed  failed  expired  cancelled
  claim: "            dispatched  renewed     -          -       -        -",
  hold: "             dispatched  renewed     stop       stop    stop     stop",
  hold_stale: "       stop        stop        stop       stop    stop     stop",
  hold_repeated: "    x           x           -          -       x        -",
  progress: "         -           renewed     stop       stop    stop     stop",
  progress_stale: "   stop        stop        stop       stop    stop     stop",
  result_succeeded: " completed   completed   late       late    late     late",
  result_failed: "    failed      failed      late       late    late     late",
  result_cancelled: " cancelled   cancelled   late       late    late     late",
  result_stale: "     late        late        late       late    late     late",
  result_repeated: "  x           x           dup        dup     x        dup",
  cancel: "           cancelled   stop        -          -       -        -",
  not_delivered: "    expired     -           -          -       -        -",
  requeue: "          -           queued      -          -       -        -",
  abandon: "          -           cancelled   -          -       -        -",
  no_result: "        -           expired     -          -       -        -",
};

const cells = taskStatuses.flatMap((status, column) =>
  taskEvents.map((event) => ({ status, event, outcome: expected[event].trim().split(/\s+/)[column] ?? "" })),
);

describe("the table", () => {
  it("TASK-06 has a cell for every event in every status", () => {
    expect(cells).toHaveLength(96);
    expect(Object.keys(taskTable)).toEqual([...taskStatuses]);
    for (const status of taskStatuses) expect(Object.keys(taskTable[status])).toEqual([...taskEvents]);
  });

  it("TASK-06 ends every task for good: no event leads out of an end", () => {
    expect(openStatuses).toEqual(["queued", "dispatched"]);
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

type TestTask = { nodeId: string; id: string };

/** A row in the status, as the engine would have left it; a cancelled one by its node's result where `reported`. */
async function rowIn(status: TaskStatus, { reported }: { reported: boolean }): Promise<TestTask> {
  const nodeId = await lab.newNode();
  const { id } = await lab.enqueue(replica, { nodeId });
  const report = async (...reports: Parameters<Replica["engine"]["results"]>[1]) => {
    await replica.engine.wait(nodeId, atOnce());
    await replica.engine.results(nodeId, reports);
  };
  if (status === "dispatched") await replica.engine.wait(nodeId, atOnce());
  if (status === "completed") await report(succeeded(id, 1));
  if (status === "failed") await report(ended(id, 1, "failed"));
  if (status === "cancelled" && reported) await report(ended(id, 1, "cancelled", "task_cancelled"));
  else if (status === "cancelled") await lab.cancel(replica, id);
  if (status === "expired") {
    await lab.superuser`UPDATE tasks SET expires_at = now() WHERE id = ${id}`;
    await sweepTasks(lab.system, nobody);
  }
  expect((await lab.row(id)).status).toBe(status);
  return { nodeId, id };
}

/** What the node was sent: an offer, the request to stop, or the verdict on its result. */
type Response = "offered" | "stop" | Verdict | undefined;

async function hold({ nodeId, id }: TestTask, generation: number): Promise<Response> {
  const { cancel } = await replica.engine.renewLeases(nodeId, [{ task_id: id, generation }]);
  return cancel.includes(id) ? "stop" : undefined;
}

async function progress({ nodeId, id }: TestTask, generation: number): Promise<Response> {
  const report = { generation, phase: "running", timings: {} };
  const { cancel } = await replica.engine.progress(nodeId, id, report);
  return cancel ? "stop" : undefined;
}

async function result(
  { nodeId, id }: TestTask,
  generation: number,
  status: "succeeded" | "failed" | "cancelled" = "succeeded",
): Promise<Response> {
  const report = status === "succeeded" ? succeeded(id, generation) : ended(id, generation, status);
  return (await replica.engine.results(nodeId, [report]))[0]?.verdict;
}

/** Neither the current delivery nor one that a crash may have undone. */
const staleGenerations = (generation: number) => [generation - 1, generation + 2];

async function forEachStale(task: TestTask, generation: number, send: typeof hold): Promise<Response> {
  const responses: Response[] = [];
  for (const stale of staleGenerations(generation)) responses.push(await send(task, stale));
  expect(new Set(responses).size).toBe(1);
  return responses[0];
}

/** Makes it happen through the same functions that production uses. */
async function happen(event: TaskEvent, task: TestTask): Promise<Response> {
  const { generation, status } = await lab.row(task.id);
  // Of a task that is not dispatched, a delivery that a crash may have undone.
  const current = status === "dispatched" ? generation : generation + 1;
  const lapse = async (...changes: ("expires_at" | "lease_until" | "cancel_requested_at")[]) => {
    for (const change of changes) {
      await lab.superuser`
        UPDATE tasks SET ${lab.superuser(change)} = now()
        WHERE id = ${task.id} AND (${change} = 'expires_at' OR status = 'dispatched')`;
    }
    await sweepTasks(lab.system, nobody);
    return undefined;
  };
  switch (event) {
    case "claim":
      return (await replica.engine.wait(task.nodeId, atOnce())).tasks.length > 0 ? "offered" : undefined;
    case "hold":
      return hold(task, current);
    case "hold_stale":
      return forEachStale(task, generation, hold);
    case "hold_repeated":
      return hold(task, generation);
    case "progress":
      return progress(task, current);
    case "progress_stale":
      return forEachStale(task, generation, progress);
    case "result_succeeded":
      return result(task, generation + 1);
    case "result_failed":
      return result(task, generation + 1, "failed");
    case "result_cancelled":
      return result(task, generation + 1, "cancelled");
    case "result_stale":
      return forEachStale(task, generation, result);
    case "result_repeated":
      return result(task, generation);
    case "cancel":
      await lab.cancel(replica, task.id);
      return (await lab.row(task.id)).status === "dispatched" ? hold(task, generation) : undefined;
    case "not_delivered":
      return lapse("expires_at");
    case "requeue":
      return lapse("lease_until");
    case "abandon":
      return lapse("lease_until", "cancel_requested_at");
    case "no_result":
      // A queued task expires otherwise: it has no lease that could run out.
      return status === "queued" ? lapse("lease_until") : lapse("lease_until", "expires_at");
  }
}

const lateResults = (id: string) => lab.superuser`SELECT FROM late_results WHERE task_id = ${id}`;

describe("an event", () => {
  it.each(cells)("TASK-06 $event of a task that is $status: $outcome", async ({ status, event, outcome }) => {
    const task = await rowIn(status, { reported: event.endsWith("_repeated") });
    if (outcome === "x") {
      const claimed = lab.superuser`UPDATE tasks SET reported = true WHERE id = ${task.id}`;
      await expect(claimed).rejects.toMatchObject({ code: "23514" });
      return;
    }
    if (outcome === "renewed") {
      await lab.superuser`UPDATE tasks SET lease_until = now() + interval '1 second' WHERE id = ${task.id}`;
    }
    const before = await lab.row(task.id);
    const response = await happen(event, task);
    const after = await lab.row(task.id);
    const unchanged = { ...before, expires_at: after.expires_at };
    switch (outcome) {
      case "renewed":
        expect(response).toBe(event === "claim" ? "offered" : undefined);
        expect(after).toMatchObject({ status, generation: before.generation });
        expect(after.lease_until?.getTime()).toBeGreaterThan(Date.now() + 30_000);
        break;
      case "stop":
        expect(response).toBe("stop");
        expect(after.status).toBe(status);
        if (event !== "cancel") expect(after).toEqual(before);
        break;
      case "late":
        expect(response).toBe("late");
        expect(after).toEqual(before);
        expect(await lateResults(task.id)).toHaveLength(1);
        break;
      case "dup":
        expect(response).toBe("duplicate");
        expect(after).toEqual(before);
        expect(await lateResults(task.id)).toHaveLength(0);
        break;
      case "-":
        expect(response).toBeUndefined();
        expect(after).toEqual(unchanged);
        break;
      default:
        expect(after.status).toBe(outcome);
        expect(after.revision).toBe(before.revision + 1);
        if (event.startsWith("result_")) expect(response).toBe("accepted");
    }
  });

  it("TASK-04 counts a delivery for each claim that changes a task, and takes over the node's count from a hold", async () => {
    const task = await rowIn("queued", { reported: false });
    await replica.engine.wait(task.nodeId, atOnce());
    await replica.engine.wait(task.nodeId, atOnce());
    expect((await lab.row(task.id)).generation).toBe(1);
    await hold(task, 2);
    expect((await lab.row(task.id)).generation).toBe(2);
  });
});

describe("a lapsed lease", () => {
  type Facts = { idempotent: boolean; cancelRequested: boolean; expiresAt: Date; timeoutSeconds: number };

  /** What is to become of a dispatched task, written down apart from the statement that decides it. */
  function statusAfterLapse(task: Facts, now: Date): TaskStatus {
    if (task.cancelRequested) return "cancelled";
    if (task.idempotent) return now < task.expiresAt ? "queued" : "expired";
    const lastResult = task.expiresAt.getTime() + (task.timeoutSeconds + RESULT_GRACE_SECONDS) * 1000;
    return now.getTime() < lastResult ? "dispatched" : "expired";
  }

  const arbitrary = fc.record({
    type: fc.constantFrom("test.repeat", "test.once"),
    cancelRequested: fc.boolean(),
    // Around the borders: its time is over; its last result is too late.
    expiresIn: fc.constantFrom(
      -1_000,
      -30 - RESULT_GRACE_SECONDS - 30,
      -30 - RESULT_GRACE_SECONDS + 30,
      -30,
      30,
      1_000,
    ),
  });

  it("TASK-06 requeues, cancels or expires a task by its type, its cancel and its time", async () => {
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
        const status = statusAfterLapse(facts, new Date());
        await sweepTasks(lab.system, nobody);
        expect((await lab.row(id)).status).toBe(status);
        await lab.superuser`DELETE FROM tasks WHERE id = ${id}`;
      }),
      { numRuns: 60 },
    );
  });
});
