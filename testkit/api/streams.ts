// A stream to the node-facing listener, as an agent opens it, and every frame that came over it.

import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { BOOT_HEADER, INSTANCE_HEADER } from "@holdfast/contracts/node/limits";
import { STREAM_PATH } from "@holdfast/contracts/node/stream";
import { uuidv7 } from "@holdfast/kit/uuid";
import { expect } from "vitest";
import { type ClientOptions, WebSocket } from "ws";
import { atEnd } from "../lifetime/at-end.ts";

type Frame = Record<string, unknown>;

export type TestStream = {
  socket: WebSocket;
  frames: Frame[];
  /** Set when it is closed. */
  closed(): { code: number; reason: string } | undefined;
  send(frame: unknown): void;
  /** Waits for the frame that answers the call: with an answer, or an error. */
  call(name: string, body?: unknown, params?: Record<string, string>): Promise<Frame>;
  /** Waits for the next frame with this key. */
  next(key: string): Promise<Frame>;
};

export type StreamOptions = {
  nodeId: string;
  instanceId?: string;
  bootId?: string;
  headers?: Record<string, string>;
};

/** Rejects with the response, if the upgrade was refused. */
class Refused extends Error {
  readonly status: number;
  readonly body: Record<string, unknown>;
  constructor(status: number, body: Record<string, unknown>) {
    super(`refused with ${status} ${String(body["code"])}`);
    this.status = status;
    this.body = body;
  }
}

export async function openTestStream(
  baseUrl: string,
  tls: Pick<ClientOptions, "cert" | "key" | "ca">,
  options: StreamOptions,
): Promise<TestStream> {
  const url = `${baseUrl.replace("https", "wss")}/internal/v1/nodes/${options.nodeId}${STREAM_PATH}`;
  const socket = new WebSocket(url, {
    ...tls,
    perMessageDeflate: false,
    headers: {
      [INSTANCE_HEADER]: options.instanceId ?? uuidv7(),
      [BOOT_HEADER]: options.bootId ?? "boot-1",
      ...options.headers,
    },
  });
  atEnd(() => socket.terminate());
  const frames: Frame[] = [];
  let closed: { code: number; reason: string } | undefined;
  socket.on("message", (data) => frames.push(JSON.parse(data.toString()) as Frame));
  socket.on("close", (code, reason) => {
    closed = { code, reason: reason.toString() };
  });
  await opened(socket);
  let ids = 0;
  const taken = new Map<string, number>();
  return {
    socket,
    frames,
    closed: () => closed,
    send: (frame) => socket.send(typeof frame === "string" ? frame : JSON.stringify(frame)),
    async call(name, body, params) {
      ids += 1;
      const id = ids;
      socket.send(JSON.stringify({ id, call: name, params, body, correlation_id: uuidv7() }));
      const find = () => frames.find((frame) => frame["id"] === id);
      await expect.poll(find).toBeDefined();
      return find() as Frame;
    },
    async next(key) {
      const count = (taken.get(key) ?? 0) + 1;
      taken.set(key, count);
      const find = () => frames.filter((frame) => key in frame)[count - 1];
      await expect.poll(find).toBeDefined();
      return find() as Frame;
    },
  };
}

async function opened(socket: WebSocket): Promise<void> {
  const refused = once(socket, "unexpected-response").then(async ([, response]: IncomingMessage[]) => {
    if (!response) throw new Error("refused without a response");
    const body = JSON.parse(await text(response)) as Record<string, unknown>;
    throw new Refused(response.statusCode ?? 0, body);
  });
  await Promise.race([once(socket, "open"), refused]);
  refused.catch(() => undefined);
}
