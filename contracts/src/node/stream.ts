// The frames of a stream between an agent and the node-facing API: one WebSocket over mutual TLS instead of a request for
// each poll, result and heartbeat. Each frame is one JSON text.
//
// An agent calls the same endpoints as over HTTP. In addition it declares how many tasks it would take; the API sends
// offers up to that number without being asked again. No schema library here: an agent at rest should not load one.

import type { Held, NodeStanding, TaskOffer } from "./protocol.ts";

/** Below a node's own path. */
export const STREAM_PATH = "/stream";

/** A request to one of the node's endpoints, by its name; `params` are those of its path but the node's id. */
export type CallFrame = {
  id: number;
  call: string;
  params?: Record<string, string>;
  body?: unknown;
  correlation_id: string;
};

/**
 * How many more tasks the agent would take, and all that it holds. Sent when the stream opens, and when it differs from
 * what both sides derive: an offered task lowers the room by one and is held until a verdict on its result.
 */
export type CapacityFrame = {
  capacity: {
    room: number;
    holding: Held[];
    /** The number of the last offer that the agent has received. */
    seen: number;
  };
};

export type AgentFrame = CallFrame | CapacityFrame;

export type AnswerFrame = { id: number; answer: unknown };

export type ErrorFrame = {
  /** The call that failed; omitted: the stream itself ends because of this. */
  id?: number;
  status: number;
  /** The error envelope, as over HTTP. */
  error: unknown;
  retry_after?: number;
  /** The server's clock, in milliseconds. */
  at: number;
};

export type OfferFrame = {
  /** Counts the offers of a stream, from 1. */
  offer: number;
  tasks: TaskOffer[];
  cancel: string[];
};

export type StandingFrame = { standing: NodeStanding };

/** This process is about to stop: the agent opens another stream, and then closes this one. */
export type MoveFrame = { move: true };

/** A heartbeat is wanted now. */
export type BeatFrame = { beat: true };

export type ApiFrame = AnswerFrame | ErrorFrame | OfferFrame | StandingFrame | MoveFrame | BeatFrame;

/** Why the API closes a stream; see RFC 6455, 7.4. */
export const streamCloseCodes = {
  /** The same agent has opened a newer stream. */
  superseded: 4000,
  /** An error frame with the reason came before. */
  refused: 4401,
  /** Not a frame of this protocol. */
  malformed: 4400,
  stopping: 1001,
} as const;
