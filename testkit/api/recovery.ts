// What an agent does after a repair: it reports, and completes the task that the api creates to verify the recovery.

import type { AnswerOf } from "@holdfast/contracts/endpoint";
import type { waitForTasks } from "@holdfast/contracts/node/endpoints";
import { sendHeartbeatFrom, type TestNode } from "./nodes.ts";

type Offer = AnswerOf<typeof waitForTasks>["tasks"][number];

const failure = { code: "task_interrupted", message: "Not of interest here.", next_step: "Nothing to do." };

/** As `expect.poll` waits. */
const LONGEST_MS = 100_000;

/**
 * Resolves with the ids of the tasks that were completed; other tasks of the node are reported as failed. The verdict before
 * must be that the recovery is being checked.
 */
export async function completeRecoveryCheck(node: TestNode): Promise<string[]> {
  await sendHeartbeatFrom(node);
  const until = performance.now() + LONGEST_MS;
  for (;;) {
    const { body } = await node.client.ask({ path: node.path("tasks/wait?wait=25&room=8") });
    const { tasks } = body as AnswerOf<typeof waitForTasks>;
    if (tasks.length === 0 && performance.now() > until)
      throw new Error("no task was created to check the recovery");
    const results = tasks.map((offer) => ({
      ...{ task_id: offer.task_id, generation: offer.generation, timings: {} },
      outcome: isCheck(offer) ? { status: "succeeded", result: { echo: null } } : { status: "failed", failure },
    }));
    if (results.length > 0)
      await node.client.ask({ method: "POST", path: node.path("results"), body: { results } });
    const done = tasks.filter(isCheck);
    if (done.length > 0) return done.map(({ task_id }) => task_id);
  }
}

const isCheck = ({ params }: Offer) => `${(params as { echo?: unknown }).echo}`.startsWith("Recovery check");
