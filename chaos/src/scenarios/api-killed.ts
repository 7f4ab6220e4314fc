// The api is killed at each step of a task's life. The steps are met exactly: the edge keeps a request or an answer
// at the moment in question, and only then the api is killed.

import { randomUUID } from "node:crypto";
import type { Task } from "@holdfast/contracts/endpoints/tasks";
import { edgeOf } from "../faults/edge.ts";
import type { Fault } from "../faults/fault.ts";
import type { EdgeRule } from "../lab/edge.ts";
import type { Lab } from "../lab/lab.ts";
import type { Scenario } from "../scenario.ts";
import type { Story } from "../story.ts";
import { PATIENCE_SECONDS, until, within } from "../until.ts";
import { isUnderWay } from "./work.ts";

export const apiKilled: Scenario = {
  name: "api-killed",
  title: "the api is killed -9 at each step of a task",
  expect: {
    sightings: [
      { by: "host", code: "control_plane_unreachable", within: 30 },
      { by: "user", code: "unreachable", within: 45 },
    ],
    before: { connection: "unreachable" },
  },
  lab: { edge: true },
  async run(story) {
    await afterClaim(story);
    await afterEnqueue(story);
    await whileExecuting(story);
    await beforeResult(story);
    await afterResult(story);
    await story.recovers();
  },
};

/** Claimed and offered, but the node never got the offer. */
async function afterClaim(story: Story): Promise<void> {
  const task = await keptAt(story, { path: "/tasks/wait", do: "keep_answer", with: '"task_id"' });
  isIn(await story.reads(task), "dispatched");
  await story.breaks(apiDead(story.lab));
  await edgeOf(story.lab).relents();
  await Promise.all([story.hostSees("control_plane_unreachable"), story.userIsRefused()]);
  await story.repairs();
  await endsOnce(story, task, "after the claim");
}

/** Confirmed to the operator, and no node there to take it. Who repeats the request gets the same task. */
async function afterEnqueue(story: Story): Promise<void> {
  const { node } = story.lab;
  await node.agent().stop("SIGKILL");
  // The api may take a moment to notice that nobody waits any more.
  const { idempotencyKey, task } = await until("a task waits for the node", PATIENCE_SECONDS, async () => {
    const key = randomUUID();
    const made = await story.gives({ idempotencyKey: key });
    return made.status === "queued" && { idempotencyKey: key, task: made };
  });
  await story.breaks(apiDead(story.lab));
  await story.repairs();
  const repeated = await story.gives({ idempotencyKey });
  if (repeated.id !== task.id) throw new Error("the repeated request made another task");
  node.startAgent();
  await endsOnce(story, task, "after it was made");
}

async function whileExecuting(story: Story): Promise<void> {
  const task = await story.gives({ params: { hold_ms: 6_000 } });
  await isUnderWay(story, task.id);
  await story.breaks(apiDead(story.lab));
  await story.repairs();
  await endsOnce(story, task, "while it was under way");
}

/** Sent by the node, and lost with the api. */
async function beforeResult(story: Story): Promise<void> {
  const task = await keptAt(story, { path: "/results", do: "keep_request" });
  isIn(await story.reads(task), "dispatched");
  await story.breaks(apiDead(story.lab));
  await edgeOf(story.lab).relents();
  await story.repairs();
  await endsOnce(story, task, "before it had the result");
}

/** Accepted, but the node does not know: it sends the result again and is answered that it was accepted. */
async function afterResult(story: Story): Promise<void> {
  const began = Date.now();
  const task = await keptAt(story, { path: "/results", do: "keep_answer" });
  const accepted = await story.reads(task);
  isIn(accepted, "completed");
  await story.breaks(apiDead(story.lab));
  await edgeOf(story.lab).relents();
  await story.repairs();
  const repeated = story.lab.node.agent().line((line) => line["msg"] === "result is duplicate", began);
  await within("the node is told that its result was there", PATIENCE_SECONDS, repeated);
  const after = await endsOnce(story, task, "after it had the result");
  if (after.revision !== accepted.revision) throw new Error("the task was changed by the second result");
}

/** A task, given when this rule holds, at the moment when something of it is kept. */
async function keptAt(story: Story, rule: EdgeRule): Promise<Task> {
  const edge = edgeOf(story.lab);
  await edge.follows([rule]);
  const began = Date.now();
  const task = await story.gives();
  await within(`the edge keeps ${rule.path}`, PATIENCE_SECONDS, edge.keeps(began));
  return task;
}

function apiDead({ control }: Lab): Fault {
  return {
    what: "the api is killed -9",
    inject: () => control.api().stop("SIGKILL"),
    repair: () => control.startApi(),
  };
}

async function endsOnce(story: Story, task: Task, when: string): Promise<Task> {
  const ended = await story.succeeds(task);
  story.notes(`killed ${when}: the task is done`);
  return ended;
}

function isIn({ id, status }: Task, wanted: Task["status"]): void {
  if (status !== wanted) throw new Error(`the task ${id} is ${status} and should be ${wanted}`);
}
