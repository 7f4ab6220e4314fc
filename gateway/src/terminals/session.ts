// One terminal: the client's socket and the node's, joined. What happens next is decided by state.ts and carried out by
// session-effects.ts. Bytes are forwarded unchanged: no copy, no parsing, no timers.

import type { TerminalGrant } from "@holdfast/contracts/internal/endpoints";
import { gatewayWaitMs, STREAM_AFTER_TASK_MS } from "@holdfast/contracts/terminal/deadlines";
import type { Size } from "@holdfast/contracts/terminal/frames";
import type { Client } from "./client.ts";
import { clientArrived } from "./session-client.ts";
import {
  defaultSize,
  detachClient,
  dropStream,
  type NodeStream,
  newSessionData,
  type SessionOptions,
} from "./session-data.ts";
import { perform } from "./session-effects.ts";
import { cutStream, streamArrived } from "./session-stream.ts";
import { isAlone, needsDeadline, needsGrace, step } from "./state.ts";
import type { Event, State } from "./states.ts";
import { createTimers } from "./timers.ts";

export type Session = {
  readonly id: string;
  readonly nodeId: string;
  readonly userKey: string;
  state(): State["at"];
  /** Serial of the open stream's certificate. */
  serial(): string | undefined;
  size(): Size;
  clientArrived(client: Client, grant: TerminalGrant): void;
  streamArrived(stream: NodeStream): void;
  apply(event: OutsideEvent): void;
  /** Its node's certificate is no longer accepted: the agent may reconnect with another. */
  cutStream(): void;
};

/** Events of a session that come neither from its sockets nor its timers. */
export type OutsideEvent =
  | Extract<
      Event,
      { type: "task_sent" | "task_ended" | "stream_refused" | "close_requested" | "drained" | "moved" }
    >
  | Omit<Extract<Event, { type: "task_failed" }>, "findable">;

type TimerName = "deadline" | "grace_over" | "detached_over" | "idle_over" | "time_over";

export function createSession(options: SessionOptions): Session {
  const { grant } = options;
  const { limits } = grant;
  const idleMs = milliseconds(limits.idle_seconds);
  let isEnded = false;

  const timers = createTimers((name: TimerName) => {
    const quietMs = performance.now() - data.lastActiveAt;
    if (name === "idle_over" && quietMs < idleMs) return timers.restart(name, idleMs - quietMs);
    apply(name === "deadline" ? { type: name, findable: options.isFindable() } : { type: name });
  });

  const apply = (event: Event) => {
    const outcome = step(data.state, event);
    data.state = outcome.state;
    for (const effect of outcome.effects) perform(data, effect);
    const { state } = data;
    if (state.at === "closed") return end();
    timers.keep("deadline", needsDeadline(state), gatewayWaitMs(grant.deadline_seconds));
    timers.keep("grace_over", needsGrace(state), STREAM_AFTER_TASK_MS);
    timers.keep("detached_over", isAlone(state), milliseconds(limits.detached_seconds));
    timers.keep("idle_over", state.at === "attached", idleMs);
  };
  const data = newSessionData(options, apply);

  const end = () => {
    timers.stopAll();
    detachClient(data);
    dropStream(data);
    if (!isEnded) options.onClosed();
    isEnded = true;
  };

  timers.restart("time_over", milliseconds(limits.longest_seconds));

  return {
    id: grant.session_id,
    nodeId: grant.node_id,
    userKey: grant.user_key,
    state: () => data.state.at,
    serial: () => data.stream?.serial,
    size: () => data.attached?.client.size ?? defaultSize,
    apply: (event) => apply(event.type === "task_failed" ? { ...event, findable: options.isFindable() } : event),
    clientArrived(client, own) {
      // A client that connects after the shell waits from its own arrival.
      if (data.state.at !== "opening") timers.stop("deadline");
      clientArrived(data, client, own);
    },
    cutStream: () => cutStream(data),
    streamArrived: (stream) => streamArrived(data, stream),
  };
}

/** Limited to the longest possible timer. */
const milliseconds = (seconds: number) => Math.min(seconds * 1000, 2 ** 31 - 1);
