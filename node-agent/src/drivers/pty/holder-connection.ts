// The agent's end of a holder's socket. The holder runs as a tenant: it is not trusted beyond its own
// terminal, and data that it does not read is not buffered without limit.

import { connect, type Socket } from "node:net";
import type { Description, HolderConnection, HolderEvents } from "./driver.ts";
import { type Control, createReader, sendBytes, sendControl } from "./messages.mjs";

/** Rejects when the holder is gone, or does not respond in time. */
export function connectToHolder(path: string, withinMs: number): Promise<HolderConnection> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    const timer = setTimeout(() => socket.destroy(new Error("the holder does not respond")), withinMs);
    socket.once("error", reject);
    const connection = overSocket(socket, (first) => {
      clearTimeout(timer);
      resolve(connection(first));
    });
    socket.once("close", () => {
      clearTimeout(timer);
      reject(new Error("the holder ended"));
    });
  });
}

function overSocket(socket: Socket, onFirst: (first: Description) => void) {
  let events: HolderEvents | undefined;
  let greeted = false;
  let gone = false;
  /** Pending requests for a description, in order. */
  const waiting: PromiseWithResolvers<Description & { type: "shell" }>[] = [];

  const onControl = (message: Control) => {
    const description = readDescription(message);
    if (description && !greeted) {
      greeted = true;
      onFirst(description);
    } else if (description?.type === "shell") waiting.shift()?.resolve(description);
    else if (message.type === "failed") waiting.shift()?.reject(new Error(String(message["message"])));
    else events?.onControl(message);
  };
  const read = createReader({
    onBytes: (bytes) => events?.onBytes(bytes),
    onControl,
    onBroken: () => socket.destroy(),
  });
  socket.on("data", read);
  socket.on("error", () => {});
  socket.on("close", () => {
    gone = true;
    for (const { reject } of waiting.splice(0)) reject(new Error("the process that should hold the shell ended"));
    events?.onGone();
  });
  const ask = (message: Control) => {
    const answer = Promise.withResolvers<Description & { type: "shell" }>();
    if (gone) answer.reject(new Error("the process that holds the shell ended"));
    else waiting.push(answer);
    sendControl(socket, message);
    return answer.promise;
  };

  return (first: Description): HolderConnection => ({
    first,
    become: (orders) => ask({ type: "become", ...orders }),
    describe: (ms) => within(ms, ask({ type: "describe" })),
    listen(to) {
      events = to;
      if (gone) queueMicrotask(() => to.onGone());
    },
    send: (message) => sendControl(socket, message),
    sendBytes(bytes, most) {
      if (socket.writableLength + bytes.length > most) return false;
      sendBytes(socket, bytes);
      return true;
    },
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
    leave() {
      events = undefined;
      socket.destroy();
    },
  });
}

function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("the holder does not respond")), ms);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

function readDescription(message: Control): Description | undefined {
  const { type, pid, offset, end, orphan_ms, notes } = message;
  if (type === "spare") return { type, pid: Number(pid) };
  if (type !== "shell") return undefined;
  const orphanMs = Number(orphan_ms);
  if (![pid, offset, end, orphanMs].every(Number.isSafeInteger)) return undefined;
  const confined = {
    private_directories: message["private_directories"] === true,
    control_group: message["control_group"] === true,
  };
  return { type, pid: Number(pid), offset: Number(offset), end: Number(end), orphanMs, notes, ...confined };
}
