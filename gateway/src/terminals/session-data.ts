// Everything that one terminal holds, and the few operations on it that its client, its stream and its effects share.

import type { TerminalEvent, TerminalGrant } from "@holdfast/contracts/internal/endpoints";
import type { TerminalFailureCode } from "@holdfast/contracts/reasons/terminal";
import type { GatewayFrame, NodeAway, NodeFrame, Size } from "@holdfast/contracts/terminal/frames";
import type { Log } from "@holdfast/service/log";
import type { WebSocket } from "ws";
import { forward } from "../listeners/forward.ts";
import type { Watched } from "../listeners/peer-sockets.ts";
import type { AttachedClient } from "./attached-client.ts";
import { createReadinessChain, type ReadinessChain } from "./readiness-chain.ts";
import type { Event, State } from "./states.ts";

/** A node's stream, admitted. */
export type NodeStream = { socket: WebSocket; serial: string } & Watched;

/** Bytes of PTYs. */
export type Traffic = { to_client: number; to_node: number };

export type SessionOptions = {
  grant: TerminalGrant;
  /** False: the shell runs already, as far as the api knows. */
  opens: boolean;
  /** Whether other gateways know that the terminal is here. */
  isFindable(): boolean;
  report(event: TerminalEvent): void;
  onFailure(code: TerminalFailureCode): void;
  /** Of all terminals; added to. */
  traffic: Traffic;
  onClosed(): void;
  log: Log;
};

export type SessionData = {
  readonly options: SessionOptions;
  readonly chain: ReadinessChain;
  /** Carries out what the state table says about the event. */
  apply(event: Event): void;
  state: State;
  attached: AttachedClient | undefined;
  /** The client that was replaced by the newest, until it got its error. */
  older: AttachedClient | undefined;
  stream: NodeStream | undefined;
  /** Why there is no stream, and since when. */
  nodeAway: { cause: NodeAway; since: string } | undefined;
  attachment: number;
  /** The node's answer to the current attachment. */
  answer: Extract<NodeFrame, { type: "attached" }> | undefined;
  /** What the node sends is for the attached client. */
  flowing: boolean;
  lastActiveAt: number;
  bytes: Traffic;
};

export const defaultSize: Size = { cols: 80, rows: 24 };

export function newSessionData(options: SessionOptions, apply: SessionData["apply"]): SessionData {
  return {
    options,
    chain: createReadinessChain(),
    apply,
    state: options.opens
      ? { at: "opening", client: false, stream: false, task: "requested" }
      : { at: "away", client: false, stream: false, informed: false },
    attached: undefined,
    older: undefined,
    stream: undefined,
    nodeAway: undefined,
    attachment: 0,
    answer: undefined,
    flowing: false,
    lastActiveAt: performance.now(),
    bytes: { to_client: 0, to_node: 0 },
  };
}

/** For log lines. */
export function namesOf({ attached, options: { grant } }: SessionData) {
  return {
    correlation_id: (attached?.grant ?? grant).correlation_id,
    session_id: grant.session_id,
    node_id: grant.node_id,
  };
}

export function countBytes(data: SessionData, direction: keyof Traffic, count: number): void {
  data.lastActiveAt = performance.now();
  data.bytes[direction] += count;
  data.options.traffic[direction] += count;
}

export function sendToNode({ stream, attached }: SessionData, frame: GatewayFrame): void {
  if (stream) forward(JSON.stringify(frame), attached?.client.socket ?? stream.socket, stream.socket);
}

export function detachClient(data: SessionData): void {
  if (data.attached) data.attached.client.handlers = undefined;
  data.attached = undefined;
  data.flowing = false;
  // Its reading may be paused because of what this client did not accept.
  data.stream?.socket.resume();
}

/** Returns the stream that was dropped; its socket stays as it is. */
export function dropStream(data: SessionData): NodeStream | undefined {
  const dropped = data.stream;
  data.stream = undefined;
  data.flowing = false;
  data.attached?.input.close();
  data.attached?.client.socket.resume();
  return dropped;
}

export const isoNow = () => new Date().toISOString();
