// A node that waits for work over a stream. Unlike a poll it stays after it was offered something: both sides derive what
// the node holds and how many more tasks it would take, and the agent corrects that when it knows better. A task that is
// offered over a dead connection counts as taken until its lease is over: so a silent agent must show a sign of life first.

import type { Held } from "@holdfast/contracts/node/protocol";
import type { CapacityFrame } from "@holdfast/contracts/node/stream";
import type { HeldPoll, PollResponse } from "./held-polls.ts";
import type { Asking } from "./transitions/deliver.ts";

export type StreamOptions = {
  instanceId: string;
  /** `offer` counts from 1. */
  send(offer: number, response: PollResponse): void;
  /** False: the agent is asked for a sign of life, and `heard` is called when it comes. */
  isHeard?(): boolean;
  /** The same agent waits on a newer stream, or polls. */
  onSuperseded(): void;
};

export type TaskStream = {
  /** As the agent declares it. */
  capacity(capacity: CapacityFrame["capacity"]): void;
  /** The agent gets a verdict on the results of these. */
  settled(taskIds: readonly string[]): void;
  heard(): void;
  detach(): void;
};

export type HeldStream = HeldPoll & Pick<TaskStream, "capacity" | "settled" | "heard">;

export function createHeldStream(
  nodeId: string,
  { instanceId, send, onSuperseded, isHeard = () => true }: StreamOptions,
  serve: (stream: HeldStream) => void,
): HeldStream {
  let asking: Asking = { nodeId, room: 0, holding: [] };
  /**
   * Offered tasks that the agent has shown no sign of having received: it has not declared its capacity since, which it does
   * rarely, nor reported a result.
   */
  let unseen: { offer: number; task: Held }[] = [];
  let offers = 0;
  /** More may wait in the database than there was room for. */
  let mayHaveMore = false;

  const stream: HeldStream = {
    ...{ nodeId, instanceId, stays: true, serving: undefined, wokenAgain: false, done: false },
    get asking() {
      return asking;
    },
    isReady: isHeard,
    heard() {
      if (stream.wokenAgain) serve(stream);
    },
    respond({ tasks, cancel }) {
      if (stream.done) return;
      // A statement that was under way while a task was offered in advance returns it again.
      const held = new Set(asking.holding.map(({ task_id }) => task_id));
      const fresh = tasks.filter(({ task_id }) => !held.has(task_id));
      const room = Math.max(0, asking.room - fresh.length);
      mayHaveMore ||= room === 0;
      if (fresh.length + cancel.length === 0) return;
      const delivered = fresh.map(({ task_id, generation }) => ({ task_id, generation }));
      asking = { nodeId, room, holding: [...asking.holding, ...delivered] };
      offers += 1;
      unseen.push(...delivered.map((task) => ({ offer: offers, task })));
      send(offers, { tasks: fresh, cancel });
    },
    fail() {
      // The agent notices by its own calls; the next check finds what is due.
      mayHaveMore = true;
    },
    giveWay() {
      stream.done = true;
      onSuperseded();
    },
    capacity({ room, holding, seen }) {
      unseen = unseen.filter(({ offer }) => offer > seen);
      const underWay = unseen.map(({ task }) => task);
      asking = { nodeId, room: Math.max(0, room - underWay.length), holding: [...holding, ...underWay] };
      mayHaveMore = false;
      serve(stream);
    },
    settled(taskIds) {
      const ended = new Set(taskIds);
      const holding = asking.holding.filter(({ task_id }) => !ended.has(task_id));
      unseen = unseen.filter(({ task }) => !ended.has(task.task_id));
      const room = asking.room + asking.holding.length - holding.length;
      // Whatever came while there was no room is still in the database.
      const wasFull = mayHaveMore || asking.room === 0;
      asking = { nodeId, room, holding };
      if (!wasFull || room === 0) return;
      mayHaveMore = false;
      serve(stream);
    },
  };
  return stream;
}

export function taskStreamOf(stream: HeldStream, remove: () => void): TaskStream {
  return {
    capacity(capacity) {
      if (!stream.done) stream.capacity(capacity);
    },
    settled: stream.settled,
    heard() {
      if (!stream.done) stream.heard();
    },
    detach() {
      stream.done = true;
      remove();
    },
  };
}
