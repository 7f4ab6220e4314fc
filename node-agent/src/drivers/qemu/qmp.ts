// A connection to a VM's QMP socket: commands and events of QEMU, as lines of JSON. QEMU serves one connection at a time.

import { createInterface } from "node:readline";
import { connectTo } from "./unix-socket.ts";

export type QmpEvent = { name: string; data: Record<string, unknown> };

export type Qmp = {
  execute(command: string): Promise<unknown>;
  close(): void;
};

type Message = {
  QMP?: unknown;
  event?: string;
  data?: Record<string, unknown>;
  return?: unknown;
  error?: { desc?: string };
};

const ANSWERS_WITHIN_MS = 10_000;

/** Rejects when there is nobody at the socket, or no greeting. */
export async function connectQmp(
  path: string,
  handlers: { onEvent: (event: QmpEvent) => void; onClose: () => void },
): Promise<Qmp> {
  const socket = await connectTo(path);
  const waiting: { resolve(value: unknown): void; reject(error: Error): void }[] = [];
  const lines = createInterface({ input: socket });
  const greeted = Promise.withResolvers<void>();
  lines.on("line", (line) => {
    const message = parsed(line);
    if (message.event !== undefined) handlers.onEvent({ name: message.event, data: message.data ?? {} });
    else if (message.QMP !== undefined) greeted.resolve();
    else if (message.error) waiting.shift()?.reject(new Error(`QEMU: ${message.error.desc ?? "error"}`));
    else waiting.shift()?.resolve(message.return);
  });
  let closed = false;
  const end = () => {
    if (closed) return;
    closed = true;
    const error = new Error("QEMU closed its connection");
    greeted.reject(error);
    for (const one of waiting.splice(0)) one.reject(error);
    handlers.onClose();
  };
  socket.on("close", end);
  socket.on("error", () => undefined);
  lines.on("error", () => undefined);
  greeted.promise.catch(() => undefined);

  const execute = (command: string) => {
    if (closed) return Promise.reject(new Error("QEMU closed its connection"));
    const answer = Promise.withResolvers<unknown>();
    waiting.push(answer);
    socket.write(`${JSON.stringify({ execute: command })}\n`);
    return within(answer.promise, `QEMU did not answer ${command}`);
  };
  try {
    await within(greeted.promise, "QEMU sent no greeting");
    await execute("qmp_capabilities");
  } catch (error) {
    closed = true;
    socket.destroy();
    throw error;
  }
  return {
    execute,
    close() {
      closed = true;
      socket.destroy();
    },
  };
}

function parsed(line: string): Message {
  try {
    return JSON.parse(line) as Message;
  } catch {
    return {};
  }
}

async function within<Value>(promise: Promise<Value>, why: string): Promise<Value> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(why)), ANSWERS_WITHIN_MS);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
