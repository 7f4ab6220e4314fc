// What is on its way when something breaks: results, and the server that takes them.

import { CallError } from "@holdfast/contracts/client";
import { getTask } from "@holdfast/contracts/endpoints/tasks";
import type { Fault } from "../faults/fault.ts";
import { egressRejected } from "../faults/network.ts";
import type { Lab } from "../lab/lab.ts";
import type { Scenario } from "../scenario.ts";
import type { Story } from "../story.ts";
import { PATIENCE_SECONDS, until } from "../until.ts";

export const resultBlocked: Scenario = {
  name: "result-blocked",
  title: "the node has claimed a task, and its result does not get through",
  expect: { hop: "task_result", signal: "node_task_result_post_failed", seconds: 30 },
  async run(story) {
    // Seen and cut off before it ends, on a busy machine too.
    const task = await story.gives({ params: { echo: "kept", hold_ms: 6_000 } });
    await isUnderWay(story, task.id);
    await story.breaks(egressRejected(story.lab));
    await story.hostSees("task_result_failed");
    await story.mends();
    const { generation } = await story.succeeds(task);
    if (generation !== 1) throw new Error(`it was delivered ${generation} times`);
    const { record } = await story.historyHas("task_result_failed");
    if (record.correlation_id !== task.correlation_id) throw new Error("the record is not of that task");
    story.notes("the record on the node has the task's correlation id");
    await story.allIsWell();
  },
};

export const databaseRestarted: Scenario = {
  name: "postgres-restarted",
  title: "PostgreSQL is restarted while tasks are made and done",
  expect: { hop: "api", signal: "control_plane_unreachable", seconds: 20 },
  lab: { ownDatabase: true },
  async run(story) {
    const load = startLoad(story, 4);
    await until("some tasks are done", PATIENCE_SECONDS, async () => load.done() > 8);
    await story.breaks(databaseDown(story.lab));
    await story.hostSees("control_plane_unreachable");
    const refusal = await story.gives().then(
      () => undefined,
      (error: unknown) => error,
    );
    if (!(refusal instanceof CallError) || refusal.envelope.code !== "database_unavailable") {
      throw new Error(`an operator is told ${refusal}`);
    }
    story.notes(`meanwhile operators are told ${refusal.envelope.code}: ${refusal.envelope.next_step}`);
    await story.mends();
    const before = load.done();
    await until("tasks are done again", PATIENCE_SECONDS, async () => load.done() > before + 8);
    const tasks = await load.stop();
    for (const task of tasks) await story.succeeds(task);
    story.notes(`${tasks.length} tasks, none lost`);
    await story.allIsWell();
  },
};

function databaseDown(lab: Lab): Fault {
  return {
    what: "PostgreSQL is down",
    inflict: async () => lab.database?.stop(),
    mend: async () => lab.database?.start(),
  };
}

/** Producers that make a task, wait for its end and make the next; a request without an answer is repeated. */
function startLoad(story: Story, producers: number) {
  const tasks: Awaited<ReturnType<Story["gives"]>>[] = [];
  let done = 0;
  let stopping = false;
  const patiently = async <T>(request: () => Promise<T>): Promise<T | undefined> => {
    while (!stopping) {
      try {
        return await request();
      } catch (error) {
        if (error instanceof CallError ? !error.envelope.retryable : isUnanswered(error)) throw error;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
    return undefined;
  };
  const produce = async (producer: number) => {
    for (let number = 0; !stopping; number += 1) {
      const idempotencyKey = `load-${producer}-${number}`;
      const task = await patiently(() => story.gives({ idempotencyKey }));
      if (!task) return;
      tasks.push(task);
      const query = { wait_seconds: 5, until: "end" as const };
      const ended = await patiently(() =>
        story.lab.control.operator(getTask, { params: { task_id: task.id }, query }),
      );
      if (ended?.status === "completed") done += 1;
    }
  };
  const running = Promise.all(Array.from({ length: producers }, (_, producer) => produce(producer)));
  running.catch(() => undefined);
  return {
    done: () => done,
    async stop() {
      stopping = true;
      await running;
      return tasks;
    },
  };
}

/** Not refused, not cut off: nothing at all. */
function isUnanswered(error: unknown): boolean {
  return (error as Error).message.includes("did not answer");
}

export async function isUnderWay(story: Story, taskId: string): Promise<void> {
  await until("the task is under way", PATIENCE_SECONDS, async () => {
    const { phase } = await story.lab.control.operator(getTask, { params: { task_id: taskId } });
    return phase === "holding";
  });
}
