// LISTEN on a connection of its own, which is opened again whenever it is lost.

import { setTimeout as wait } from "node:timers/promises";
import { type Connection, type ConnectionOptions, openConnection } from "./connection.ts";
import { Identifier } from "./template.ts";

export type Subscription = { unlisten(): void };

export type Listener = {
  channel: string;
  onNotification(payload: string): void;
  /** Each time that listening begins: what was published before may have been missed. */
  onListening(): void;
};

const FIRST_WAIT_MS = 50;
const LONGEST_WAIT_MS = 1_000;

/** Fails when the first connection cannot be opened. */
export async function listen(options: ConnectionOptions, listener: Listener): Promise<Subscription> {
  const stopped = new AbortController();
  let current: Connection;

  const start = async () => {
    const connection = await openConnection(options);
    connection.onNotification(listener.onNotification);
    try {
      await connection.send({ text: `LISTEN ${new Identifier(listener.channel).text}` });
    } catch (error) {
      connection.destroy();
      throw error;
    }
    current = connection;
    if (stopped.signal.aborted) return connection.close();
    listener.onListening();
    connection.onLost(() => void restart());
  };

  const restart = async () => {
    for (let waitMs = FIRST_WAIT_MS; !stopped.signal.aborted; waitMs = Math.min(2 * waitMs, LONGEST_WAIT_MS)) {
      try {
        await wait(waitMs, undefined, { signal: stopped.signal });
        return await start();
      } catch {
        // Tried again, until it is no longer wanted.
      }
    }
  };

  await start();
  return {
    unlisten() {
      stopped.abort();
      current.close();
    },
  };
}
