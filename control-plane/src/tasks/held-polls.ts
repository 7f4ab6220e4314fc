// The nodes that wait for work at this process: by a poll, or over a stream. A poll ends once: with a response, a
// failure, when its connection closes, when its time is over, or because the same agent waits anew. A stream stays.

import type { Held, TaskOffer } from "@holdfast/contracts/node/protocol";
import { createTicks } from "../mechanisms/ticks.ts";
import type { Asking } from "./transitions/deliver.ts";

export type Poll = { instanceId: string; room: number; holding: Held[]; waitMs: number; signal: AbortSignal };
export type PollResponse = { tasks: TaskOffer[]; cancel: string[] };

export type HeldPoll = {
  nodeId: string;
  instanceId: string;
  /** What it holds, and how many more tasks it would take. */
  readonly asking: Asking;
  /** A stream: it stays after a response. */
  readonly stays: boolean;
  /** Set while a statement is under way for it. */
  serving: Promise<void> | undefined;
  /** Woken since that statement began, which may have missed the reason; or while it was not ready. */
  wokenAgain: boolean;
  done: boolean;
  /** Whether there is somebody to take what it is offered. */
  isReady(): boolean;
  respond(response: PollResponse): void;
  fail(error: unknown): void;
  /** The same agent waits anew. */
  giveWay(): void;
};

export type OpenPoll = HeldPoll & { response: Promise<PollResponse> };

export type HeldPolls = {
  /** `onTimeout` is called after a poll has ended with nothing because its time was over. */
  open(nodeId: string, poll: Poll, onTimeout: (poll: HeldPoll) => void): OpenPoll;
  /** Returns how to remove it again. */
  attach(stream: HeldPoll): () => void;
  of(nodeId: string): readonly HeldPoll[];
  all(): HeldPoll[];
  isEmpty(): boolean;
  heldTaskIds(): string[];
};

export const emptyResponse: PollResponse = { tasks: [], cancel: [] };

/** Polls that end with nothing end together: such a response is not urgent. */
const TICK_MS = 100;

export function createHeldPolls(): HeldPolls {
  const byNode = new Map<string, readonly HeldPoll[]>();
  const ticks = createTicks(TICK_MS);
  const of = (nodeId: string) => byNode.get(nodeId) ?? none;

  const supersede = (older: HeldPoll) => {
    remove(older);
    older.giveWay();
  };
  const add = (poll: HeldPoll) => {
    for (const older of of(poll.nodeId)) if (older.instanceId === poll.instanceId) supersede(older);
    byNode.set(poll.nodeId, [...of(poll.nodeId), poll]);
  };
  const remove = (poll: HeldPoll) => {
    const left = of(poll.nodeId).filter((one) => one !== poll);
    if (left.length > 0) byNode.set(poll.nodeId, left);
    else byNode.delete(poll.nodeId);
  };

  return {
    of,
    attach(stream) {
      add(stream);
      return () => remove(stream);
    },
    all: () => [...byNode.values()].flat(),
    isEmpty: () => byNode.size === 0,
    heldTaskIds() {
      const ids: string[] = [];
      for (const polls of byNode.values()) {
        for (const { asking } of polls) for (const { task_id } of asking.holding) ids.push(task_id);
      }
      return ids;
    },
    open(nodeId, { instanceId, room, holding, waitMs, signal }, onTimeout) {
      const { promise, resolve, reject } = Promise.withResolvers<PollResponse>();
      const end = (settle: () => void) => {
        if (poll.done) return;
        poll.done = true;
        cancelTimeout();
        signal.removeEventListener("abort", abandon);
        remove(poll);
        settle();
      };
      const poll: OpenPoll = {
        nodeId,
        instanceId,
        asking: { nodeId, room, holding },
        stays: false,
        serving: undefined,
        wokenAgain: false,
        done: false,
        isReady: () => true,
        respond: (response) => end(() => resolve(response)),
        fail: (error) => end(() => reject(error)),
        giveWay: () => poll.respond(emptyResponse),
        response: promise,
      };
      const abandon = () => poll.respond(emptyResponse);
      signal.addEventListener("abort", abandon);
      const cancelTimeout = ticks.after(waitMs, async () => {
        // What is being claimed at that moment is still offered.
        if (poll.serving) await poll.serving;
        if (poll.done) return;
        abandon();
        onTimeout(poll);
      });
      add(poll);
      return poll;
    },
  };
}

const none: readonly HeldPoll[] = [];
