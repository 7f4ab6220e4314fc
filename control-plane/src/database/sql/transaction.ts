// One transaction on a connection of its own. Its callback gets `send`, which works until the transaction is over or its
// connection is lost, and refuses from then on, whatever the callback still tries.

import { escapeLiteral, type QueryResult } from "pg";
import type { Connection, Message } from "./connection.ts";
import { ConnectionError } from "./errors.ts";

export type Send = (message: Message) => Promise<QueryResult>;

export async function transact<T>(
  connection: Connection,
  settings: Record<string, string>,
  work: (send: Send) => T | Promise<T>,
): Promise<T> {
  let over: Error | undefined;
  let failed: unknown;
  const lost = Promise.withResolvers<never>();
  lost.promise.catch(() => undefined);
  const unsubscribe = connection.onLost((error) => {
    over ??= error;
    lost.reject(new ConnectionError("CONNECTION_CLOSED", error));
  });
  const send: Send = async (message) => {
    if (over) throw new ConnectionError("CONNECTION_CLOSED", over);
    try {
      return await connection.send(message);
    } catch (error) {
      // The server has aborted the transaction, even if the callback catches this.
      failed ??= error;
      throw error;
    }
  };

  try {
    await connection.send({ text: opening(settings) });
    const result = await Promise.race([work(send), lost.promise]);
    if (failed !== undefined) throw failed;
    over ??= new Error("the transaction has been committed");
    const { command } = await connection.send({ text: "COMMIT" });
    // A statement that nobody waited for has failed meanwhile: the server has rolled back.
    if (command !== "COMMIT") throw failed ?? new Error("the transaction was rolled back");
    return result;
  } catch (error) {
    over ??= new Error("the transaction has been rolled back");
    // A connection that cannot roll back is not reused.
    if (!connection.failure()) await connection.send({ text: "ROLLBACK" }).catch(() => connection.destroy());
    throw error;
  } finally {
    unsubscribe();
  }
}

/** The settings hold for this transaction; they need no round trip of their own. */
function opening(settings: Record<string, string>): string {
  const assignments = Object.entries(settings).map(
    ([name, value]) => `; SET LOCAL ${name} = ${escapeLiteral(value)}`,
  );
  return `BEGIN${assignments.join("")}`;
}
