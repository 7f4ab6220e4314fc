// The node's side of one terminal: output is forwarded to the client as it comes, frames become events.

import { MOST_FRAME_BYTES, type NodeFrame, readNodeFrame } from "@holdfast/contracts/terminal/frames";
import { exhaustive } from "@holdfast/kit/exhaustive";
import { forward, MOST_UNSENT_BYTES } from "../listeners/forward.ts";
import { CLOSE_TOO_LARGE, TOO_LARGE } from "../listeners/peer-sockets.ts";
import { errorOf, exitOf } from "./sanitize.ts";
import { countBytes, dropStream, type NodeStream, namesOf, type SessionData } from "./session-data.ts";

const MOST_CONTROL_BYTES = 4_096;

export function streamArrived(data: SessionData, arrived: NodeStream): void {
  const { socket } = arrived;
  dropStream(data)?.socket.terminate();
  data.stream = arrived;
  data.options.log.info(namesOf(data), "a node's stream arrived");
  socket.on("message", (message: Buffer, isBinary: boolean) => {
    if (data.stream !== arrived) return;
    if (isBinary) return toClient(data, message);
    const frame = message.length > MOST_CONTROL_BYTES ? undefined : readNodeFrame(message.toString());
    if (frame) onFrame(data, frame);
  });
  const tooLarge = () => {
    if (data.stream !== arrived) return;
    dropStream(data);
    data.options.log.warn(
      { ...namesOf(data), limit_bytes: MOST_FRAME_BYTES },
      "a node sent a message over the limit",
    );
    data.apply({ type: "node_too_large" });
  };
  socket.on(TOO_LARGE, () => {
    socket.close(CLOSE_TOO_LARGE);
    tooLarge();
  });
  socket.on("close", (code) => {
    // The gateway that passes the stream on has closed it for this.
    if (code === CLOSE_TOO_LARGE) tooLarge();
    if (data.stream !== arrived) return;
    dropStream(data);
    streamLeft(data, arrived);
  });
  data.apply({ type: "stream_arrived" });
}

/** Ends the connection at once; the agent may reconnect. */
export function cutStream(data: SessionData): void {
  const dropped = dropStream(data);
  if (!dropped) return;
  dropped.socket.terminate();
  streamLeft(data, dropped);
}

function streamLeft(data: SessionData, { unresponsiveSince }: NodeStream): void {
  const silentSince = unresponsiveSince();
  const since = new Date(silentSince ?? Date.now()).toISOString();
  data.nodeAway = { cause: silentSince === undefined ? "disconnected" : "silent", since };
  if (silentSince !== undefined)
    data.options.log.warn({ ...namesOf(data), since }, "closed a node's stream that did not respond");
  data.apply({ type: "stream_left" });
}

function toClient(data: SessionData, output: Buffer): void {
  const { attached, stream } = data;
  if (!data.flowing || !attached || !stream) return;
  attached.sent += output.length;
  countBytes(data, "to_client", output.length);
  forward(output, stream.socket, attached.client.socket);
}

function onFrame(data: SessionData, frame: NodeFrame) {
  const { attached } = data;
  switch (frame.type) {
    case "hello":
      return data.apply({ type: "hello" });
    case "attached":
      if (frame.attachment !== data.attachment) return;
      data.answer = frame;
      return data.apply({ type: "attached" });
    case "paused":
    case "ack":
      // A client that does not read its pending frames gets no more of them.
      if (data.flowing && attached && attached.client.socket.bufferedAmount <= MOST_UNSENT_BYTES)
        attached.client.send(frame);
      return;
    case "exit":
      return data.apply({ type: "exit", ...exitOf(frame) });
    case "error":
      return data.apply({ type: "node_error", ...errorOf(frame) });
    default:
      return exhaustive(frame);
  }
}
