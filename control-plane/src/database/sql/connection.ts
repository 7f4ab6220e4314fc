// One connection to PostgreSQL. Statements that are sent before earlier ones are answered go out at once, in order. Once
// lost, a connection refuses everything: it is never opened again, so no statement can end up in another's session.

import { Socket } from "node:net";
import { Client, type ClientConfig, type QueryResult } from "pg";
import { clientAddress } from "./address.ts";
import { ConnectionError, connectionError, endsConnection } from "./errors.ts";
import { typeParser } from "./values.ts";

export type ConnectionOptions = {
  url: string;
  application: string;
  connectTimeoutSeconds: number;
  /** Of the session, such as search_path. */
  parameters: Record<string, string | number>;
};

export type Message = { text: string; values?: (string | Buffer | null)[]; name?: string };

export type Connection = {
  openedAt: number;
  /** Why it can no longer be used. */
  failure(): Error | undefined;
  /** Calls back once, at once if the connection is lost already. Returns an unsubscribe function. */
  onLost(listener: (error: Error) => void): () => void;
  onNotification(listener: (payload: string) => void): void;
  send(message: Message): Promise<QueryResult>;
  /** Statements under way are answered first. Resolves when the connection is closed. */
  close(): Promise<void>;
  /** Statements under way fail. */
  destroy(): void;
};

const KEEP_ALIVE_MS = 60_000;

export async function openConnection(options: ConnectionOptions): Promise<Connection> {
  const socket = new Socket();
  const client = new Client({
    ...clientAddress(options.url, options.parameters),
    application_name: options.application,
    connectionTimeoutMillis: options.connectTimeoutSeconds * 1000,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    pipeline: true,
    types: { getTypeParser: typeParser as NonNullable<ClientConfig["types"]>["getTypeParser"] },
    stream: () => socket,
  });
  let failure: Error | undefined;
  const lost = new Set<(error: Error) => void>();
  const fail = (error: Error) => {
    if (failure) return;
    failure = error;
    for (const listener of lost) listener(error);
  };
  client.on("error", (error) => fail(connectionError(error)));
  client.on("end", () => fail(new ConnectionError("CONNECTION_CLOSED")));
  try {
    await client.connect();
  } catch (error) {
    socket.destroy();
    throw connectionError(error);
  }

  return {
    openedAt: Date.now(),
    failure: () => failure,
    onLost(listener) {
      if (failure) listener(failure);
      else lost.add(listener);
      return () => void lost.delete(listener);
    },
    onNotification: (listener) => void client.on("notification", ({ payload }) => listener(payload ?? "")),
    async send(message) {
      if (failure) throw new ConnectionError("CONNECTION_CLOSED", failure);
      try {
        return await client.query(message);
      } catch (error) {
        const known = connectionError(error);
        if (endsConnection(known)) {
          fail(known);
          socket.destroy();
        }
        throw known;
      }
    },
    close() {
      fail(new ConnectionError("CONNECTION_ENDED"));
      return client.end();
    },
    destroy() {
      fail(new ConnectionError("CONNECTION_ENDED"));
      socket.destroy();
    },
  };
}
