// Starts holders one by one, and keeps one ready after the first terminal, because starting Node.js takes
// longer than everything else that a terminal needs.

import { randomUUID } from "node:crypto";
import { watch } from "node:fs";
import { rename, rm, writeFile } from "node:fs/promises";
import { identify, type ProcessIdentity } from "@holdfast/kit/processes";
import type { HolderConnection, PtyDriver } from "../drivers/pty/driver.ts";
import { namesIn, shellName, spareName, taskNoteName } from "./directory.ts";

export type Holder = { connection: HolderConnection; process: ProcessIdentity; name: string };

export type Holders = {
  /** Returns a holder for this session, with its socket renamed to it and a note of the task. */
  take(shell: { sessionId: string; taskId: string }): Promise<Holder>;
  /** Starts a spare for the next terminal. */
  keepOne(): void;
  /** Adopts the spare of an earlier agent process. */
  adopt(name: string): Promise<void>;
  /** Ends the spare. */
  letGo(): void;
  /** For a holder that has ended. */
  forget(name: string): Promise<void>;
  /** Resolves when no holder is starting any more. */
  close(): Promise<void>;
};

const START_MS = 10_000;
const ANSWER_MS = 5_000;
const LOOK_MS = 10;

export function createHolders(options: {
  directory: string;
  /** The path of a name in the directory, short enough for a socket's address. */
  at: (name: string) => string;
  driver: Pick<PtyDriver, "launch" | "connect">;
  orphanSeconds: number;
}): Holders {
  const { directory, at } = options;
  const starting = new Map<string, { ready: () => void; failed: (error: Error) => void }>();
  let watcher: { close(): void } | undefined;
  const underWay = new Set<Promise<Holder>>();
  let spare: Promise<Holder> | undefined;
  let closed = false;

  const start = (): Promise<Holder> => {
    const started = startOne();
    underWay.add(started);
    const over = () => void underWay.delete(started);
    started.then(over, over);
    return started;
  };

  const startOne = async (): Promise<Holder> => {
    const id = randomUUID();
    const name = spareName(id);
    const ready = new Promise<void>((resolve, reject) => {
      starting.set(name, { ready: resolve, failed: reject });
      watcher ??= watchNames(directory, (changed) => starting.get(changed)?.ready());
    });
    const timer = setTimeout(
      () => starting.get(name)?.failed(new Error(`the holder was not ready within ${START_MS / 1000} seconds`)),
      START_MS,
    );
    try {
      const launched = options.driver.launch({ id, directory, orphanSeconds: options.orphanSeconds });
      launched.onFailure((why) => starting.get(name)?.failed(new Error(why)));
      await ready;
    } catch (error) {
      await forget(`${id}.starting`);
      throw error;
    } finally {
      clearTimeout(timer);
      starting.delete(name);
      if (starting.size === 0) {
        watcher?.close();
        watcher = undefined;
      }
    }
    return connect(name);
  };

  const connect = async (name: string): Promise<Holder> => {
    const connection = await options.driver.connect(at(name), ANSWER_MS);
    const found = connection.first.type === "spare" ? identify(connection.first.pid) : undefined;
    if (found) return { connection, process: found, name };
    connection.leave();
    throw new Error("the holder ended at once");
  };

  const hold = (coming: Promise<Holder>) => {
    spare = coming;
    const lost = () => {
      if (spare === coming) spare = undefined;
    };
    coming.then(({ connection, name }) => {
      const onGone = () => {
        lost();
        void forget(name);
      };
      if (spare === coming) connection.listen({ onBytes() {}, onControl() {}, onGone });
    }, lost);
  };

  const forget = async (name: string) => {
    if (name.endsWith(".shell")) await rm(`${directory}/${taskNoteName(name)}`, { force: true });
    await rm(`${directory}/${name}`, { force: true });
  };

  const dismiss = ({ connection, name }: Holder) => {
    connection.listen({ onBytes() {}, onControl() {}, onGone: () => void forget(name) });
    connection.send({ type: "done" });
  };
  const letGo = () => {
    const going = spare;
    spare = undefined;
    void going?.then(dismiss, () => {});
  };

  return {
    async take({ sessionId, taskId }) {
      const own = spare ?? start();
      spare = undefined;
      const holder = await own;
      const name = shellName(sessionId, holder.process);
      // Before it is assigned: if the agent ends right now, the next one finds it by its session and its task. A full
      // disk has no room for the note; it costs only the recovery of the task.
      await writeFile(`${directory}/${taskNoteName(sessionId)}`, taskId, { mode: 0o600 }).catch(() => {});
      await rename(`${directory}/${holder.name}`, `${directory}/${name}`);
      return { ...holder, name };
    },
    keepOne() {
      if (!spare && !closed) hold(start());
    },
    async adopt(name) {
      const coming = connect(name);
      if (spare) void coming.then(dismiss, () => {});
      else hold(coming);
      await coming.catch(() => forget(name));
    },
    letGo,
    forget,
    async close() {
      closed = true;
      letGo();
      await Promise.allSettled(underWay);
    },
  };
}

/** Names as they appear. A host has a limited number of inotify watches, and others may use all of them. */
function watchNames(directory: string, onName: (name: string) => void): { close(): void } {
  try {
    // If it fails later, the holder is reported as not ready in time.
    return watch(directory, (_event, name) => onName(String(name))).on("error", () => {});
  } catch {
    const timer = setInterval(() => namesIn(directory).forEach(onName), LOOK_MS);
    return { close: () => clearInterval(timer) };
  }
}
