// The client's side of one terminal: input is forwarded to the node as it comes, frames become events.

import type { TerminalGrant } from "@holdfast/contracts/internal/endpoints";
import type { ClientFrame } from "@holdfast/contracts/terminal/frames";
import { forward } from "../listeners/forward.ts";
import { type AttachedClient, attachedClient } from "./attached-client.ts";
import type { Client } from "./client.ts";
import { countBytes, detachClient, type SessionData, sendToNode } from "./session-data.ts";

export function clientArrived(data: SessionData, client: Client, grant: TerminalGrant): void {
  data.older = data.attached;
  detachClient(data);
  const arrived = attachedClient(client, grant);
  data.attached = arrived;
  client.requestedAt = Date.parse(grant.asked_at);
  client.handlers = {
    onBytes: (input) => toNode(data, arrived, input),
    onTooLarge: () => data.apply({ type: "too_large" }),
    onFrame: (frame) => onFrame(data, arrived, frame),
    onLeft() {
      data.apply({ type: "client_left" });
      detachClient(data);
    },
  };
  data.apply({ type: "client_arrived" });
  discard(data, client, client.early);
  if (client.sentTooLarge) data.apply({ type: "too_large" });
  if (!client.isOpen()) client.handlers?.onLeft();
}

function onFrame(data: SessionData, { input, sent, before }: AttachedClient, frame: Frame) {
  if (frame.type === "input") return input.answered(frame);
  if (data.state.at !== "attached" && data.state.at !== "attaching") return;
  if (frame.type === "resize") return sendToNode(data, frame);
  const processed = Math.min(frame.bytes, sent) - before;
  if (data.flowing && processed > 0) sendToNode(data, { type: "ack", bytes: processed });
}

type Frame = Exclude<ClientFrame, { type: "ping" }>;

function toNode(data: SessionData, { client, input }: AttachedClient, bytes: Buffer) {
  if (!data.stream || !input.isOpen()) return discard(data, client, bytes.length);
  countBytes(data, "to_node", bytes.length);
  forward(bytes, client.socket, data.stream.socket);
  const acknowledgement = input.passed(bytes.length);
  if (acknowledgement) client.send(acknowledgement);
}

/** A client with a writer's id still has its input, and sends it again. */
function discard(data: SessionData, { writer }: Client, bytes: number): void {
  if (writer === undefined && bytes > 0) data.apply({ type: "overflow", bytes });
}
