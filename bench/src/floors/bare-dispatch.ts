// The floor below a dispatch: a row committed to the disk, a message pushed over one WebSocket of mutual TLS and answered by
// another process, and the row changed, committed to the disk again. Commits that come together share a statement, as ours do.

import { fork } from "node:child_process";
import { once } from "node:events";
import https from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openOwner, type Sql } from "@holdfast/control-plane/database/connect";
import { startEmbeddedPostgres } from "@holdfast/control-plane/database/embedded/start";
import { createBatches } from "@holdfast/control-plane/mechanisms/batches";
import { WebSocket, WebSocketServer } from "ws";
import { serveRoundTrips } from "../round-trips.ts";
import { type AgentCredentials, bareCredentials } from "./credentials.ts";

export type BareDispatch = { directory: string; single: number; many: number; inFlight: number };

if (process.argv[2] === "agent") {
  const { port, credentials } = JSON.parse(process.env["BENCH_AGENT"] ?? "") as {
    port: number;
    credentials: AgentCredentials;
  };
  const stream = new WebSocket(`wss://127.0.0.1:${port}`, { ...credentials, perMessageDeflate: false });
  stream.on("message", (data) => stream.send(String(data)));
  process.once("disconnect", () => process.exit());
} else {
  const options = JSON.parse(process.env["BENCH_PEER"] ?? "") as BareDispatch;
  const { server: own, agent: credentials } = await bareCredentials();
  const server = https.createServer({
    ...{ cert: own.cert, key: own.key, ca: own.authorities },
    ...{ requestCert: true, rejectUnauthorized: false },
  });
  const streams = new WebSocketServer({ server, perMessageDeflate: false });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const agent = fork(fileURLToPath(import.meta.url), ["agent"], {
    env: { ...process.env, BENCH_AGENT: JSON.stringify({ port, credentials }) },
  });
  const [stream] = (await once(streams, "connection")) as [WebSocket];

  const database = await startEmbeddedPostgres({ directory: join(options.directory, "postgres") });
  const connections = [openOwner(database.superuserUrl), openOwner(database.superuserUrl)] as const;
  await connections[0].unsafe("CREATE TABLE public.bare (id integer PRIMARY KEY, ended boolean NOT NULL)");
  const insert = committed(
    connections[0],
    (sql, ids) => sql`
    INSERT INTO public.bare SELECT id, false FROM unnest(${ids}::integer[]) AS id`,
  );
  const update = committed(
    connections[1],
    (sql, ids) => sql`
    UPDATE public.bare SET ended = true WHERE id = ANY (${ids}::integer[])`,
  );

  const answered = new Map<number, () => void>();
  stream.on("message", (data) => answered.get(Number(String(data)))?.());
  let made = 0;
  process.once("SIGTERM", async () => {
    agent.disconnect();
    await Promise.all(connections.map((sql) => sql.end({ timeout: 1 })));
    await database.stop({ hurry: true });
    process.exit(0);
  });
  await serveRoundTrips(async () => {
    const id = made++;
    await insert(id);
    await new Promise<void>((resolve) => {
      answered.set(id, resolve);
      stream.send(String(id));
    });
    answered.delete(id);
    await update(id);
  }, options);
}

function committed(sql: Sql, statement: (sql: Sql, ids: number[]) => Promise<unknown>) {
  const batches = createBatches<number, void>({
    most: 128,
    atOnce: 1,
    keyOf: String,
    concernsAll: () => true,
    run: async (ids) => {
      await statement(sql, ids);
      return ids.map(() => undefined);
    },
  });
  return (id: number) => batches.add(id);
}
