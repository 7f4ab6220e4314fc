// The peer of the start-up bench: a bare Fastify that connects to PostgreSQL and answers one query.
// It starts beside the server, so the first attempts to connect may come too early.

import { setTimeout as delay } from "node:timers/promises";
import Fastify from "fastify";
import postgres from "postgres";

const retryMs = 5;
const sql = postgres({ host: process.argv[2], user: "postgres", database: "postgres", max: 1 });
const app = Fastify({ logger: false });

app.get("/", async () => {
  const [row] = await sql`SELECT 1 AS one`;
  return row;
});
await connected();
const url = await app.listen({ host: "127.0.0.1", port: 0 });
process.stdout.write(`${JSON.stringify({ url })}\n`);

async function connected(): Promise<void> {
  for (;;) {
    try {
      await sql`SELECT 1`;
      return;
    } catch {
      await delay(retryMs);
    }
  }
}
