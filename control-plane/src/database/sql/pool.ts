// A bounded number of connections. Each is lent to one borrower at a time; the one returned last is lent first, so that
// few connections stay warm when little is going on. A lost connection is forgotten, and the next borrower opens another.

import { type Connection, type ConnectionOptions, openConnection } from "./connection.ts";
import { ConnectionError } from "./errors.ts";

export type Pool = {
  borrow(): Promise<Connection>;
  release(connection: Connection): void;
  /** Refuses new borrowers, and waits for the present ones for as long as `timeoutMs`. */
  end(timeoutMs: number): Promise<void>;
};

/** Memory that the server keeps for a session, such as plans, is not kept for good. */
const MOST_AGE_MS = 3_600_000;

export function createPool(options: ConnectionOptions & { max: number }): Pool {
  const idle: Connection[] = [];
  const open = new Set<Connection>();
  const waiting: PromiseWithResolvers<Connection>[] = [];
  let opening = 0;
  let ended: PromiseWithResolvers<void> | undefined;

  const mayOpen = () => open.size + opening < options.max;

  const openAnother = async (): Promise<Connection> => {
    opening += 1;
    try {
      const connection = await openConnection(options);
      if (ended) {
        void connection.close();
        throw new ConnectionError("CONNECTION_ENDED");
      }
      open.add(connection);
      connection.onLost(() => forget(connection));
      return connection;
    } finally {
      opening -= 1;
      serveWaiting();
    }
  };

  const forget = (connection: Connection) => {
    open.delete(connection);
    const at = idle.indexOf(connection);
    if (at >= 0) idle.splice(at, 1);
    serveWaiting();
    if (open.size === 0) ended?.resolve();
  };

  /** There may be room where a connection was lost, or could not be opened. */
  const serveWaiting = () => {
    while (waiting.length > 0 && mayOpen()) {
      const next = waiting.shift();
      openAnother().then(next?.resolve, next?.reject);
    }
  };

  return {
    async borrow() {
      if (ended) throw new ConnectionError("CONNECTION_ENDED");
      const connection = idle.pop();
      if (connection) return connection;
      if (mayOpen()) return openAnother();
      const turn = Promise.withResolvers<Connection>();
      waiting.push(turn);
      return turn.promise;
    },
    release(connection) {
      if (connection.failure()) return;
      if (ended || Date.now() - connection.openedAt > MOST_AGE_MS) return void connection.close();
      const next = waiting.shift();
      if (next) next.resolve(connection);
      else idle.push(connection);
    },
    async end(timeoutMs) {
      if (ended) return ended.promise;
      ended = Promise.withResolvers();
      for (const turn of waiting.splice(0)) turn.reject(new ConnectionError("CONNECTION_ENDED"));
      const closing = idle.splice(0).map((connection) => connection.close());
      if (open.size === 0) ended.resolve();
      const timer = setTimeout(() => {
        for (const connection of open) connection.destroy();
      }, timeoutMs);
      await Promise.all([ended.promise, ...closing]);
      clearTimeout(timer);
    },
  };
}
