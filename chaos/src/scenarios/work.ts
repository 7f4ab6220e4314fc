// What is on its way when something breaks: results, and the server that takes them.

import { CallError } from "@holdfast/contracts/client";
import { getTask } from "@holdfast/contracts/endpoints/tasks";
import type { Fault } from "../faults/fault.ts";
import { egressRejected } from "../faults/network.ts";
import type { Expected } from "../judge.ts";
import type { Lab } from "../lab/lab.ts";
import type { Scenario } from "../scenario.ts";
import type { Story } from "../story.ts";
import { PATIENCE_SECONDS, until } from "../until.ts";

const blocked: Expected = {
  rows: ["D01"],
  sightings: [
    { by: "host", code: "task_result_failed", within: 30 },
    { by: "host", code: "api_unreachable", within: 30 },
    { by: "dashboard", code: "heartbeat_stale", within: 30 },
  ],
};

export const resultBlocked: Scenario = {
  name: "result-blocked",
  title: "the node has claimed a task, and its result does not get through",
  expect: { ...blocked, before: { connection: "offline", attention: ["connection_lost"] } },
  polling: blocked,
  async run(story) {
    // Seen and cut off before it ends, on a busy machine too.
    const task = await story.gives({ params: { echo: "kept", hold_ms: 6_000 } });
    await isUnderWay(story, task.id);
    await story.breaks(egressRejected(story.lab));
    await Promise.all([
      story.hostSees("task_result_failed"),
      story.hostSees("api_unreachable"),
      story.dashboardSees("heartbeat_stale"),
    ]);
    await story.repairs();
    const { generation } = await story.succeeds(task);
    if (generation !== 1) throw new Error(`it was delivered ${generation} times`);
    await story.recovers();
  },
};

export const databaseRestarted: Scenario = {
  name: "postgres-restarted",
  title: "PostgreSQL is restarted while tasks are made and done",
  expect: {
    sightings: [
      { by: "host", code: "control_plane_unreachable", within: 25 },
      { by: "user", code: "database_unavailable", within: 60 },
    ],
    before: { connection: "database_unavailable" },
    // Whether a result is on its way at that moment.
    beside: "task_result_failed",
  },
  lab: { ownDatabase: true },
  async run(story) {
    const load = startLoad(story, 4);
    await until("some tasks are done", PATIENCE_SECONDS, async () => load.done() > 8);
    await story.breaks(databaseDown(story.lab));
    await Promise.all([story.hostSees("control_plane_unreachable"), story.userIsRefused()]);
    await story.repairs();
    const before = load.done();
    await until("tasks are done again", PATIENCE_SECONDS, async () => load.done() > before + 8);
    const tasks = await load.stop();
    for (const task of tasks) await story.succeeds(task);
    story.notes(`${tasks.length} tasks, none lost`);
    await story.recovers();
  },
};

function databaseDown(lab: Lab): Fault {
  return {
    what: "PostgreSQL is down",
    inject: async () => lab.database?.stop(),
    repair: async () => lab.database?.start(),
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
