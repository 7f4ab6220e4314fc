// What modules do with the streams of agents, and what they learn from them.

import type { ApiFrame, CapacityFrame } from "@holdfast/contracts/node/stream";
import type { NodeIdentity } from "../identity-hook.ts";

/** Why a stream has ended. */
export type StreamEnd =
  /** The agent has stopped, or has opened another stream. */
  | "closed_by_agent"
  | "superseded"
  | "connection_lost"
  /** It did not respond to a ping. */
  | "unresponsive"
  /** The node's identity is no longer accepted, or the agent does not speak this protocol. */
  | "refused"
  | "server_stopped";

export type NodeStream = {
  readonly id: string;
  readonly node: NodeIdentity;
  send(frame: ApiFrame): void;
  /** Whether the agent has sent something a moment ago. If not, it is asked for a sign of life; see `StreamUse.heard`. */
  isHeard(): boolean;
  /** The same agent has a newer one: closes when the calls in progress are answered. */
  supersede(): void;
};

/** What a module does with a stream. */
export type StreamUse = {
  capacity?(capacity: CapacityFrame["capacity"]): void;
  /** The sign of life that was asked for. */
  heard?(): void;
  /** After the answer to a call was sent. */
  answered?(call: string, answer: unknown): void;
  closed?(end: StreamEnd): void;
};
export type UseStream = (stream: NodeStream) => StreamUse;
