// The peer of the start-up bench: a bare Fastify that connects to PostgreSQL and answers one query.
// It starts beside the server, so the first attempts to connect may come too early.

import { setTimeout as delay } from "node:timers/promises";
import Fastify from "fastify";
import { Client } from "pg";

const retryMs = 5;
const app = Fastify({ logger: false });

app.get("/", async () => {
  const { rows } = await client.query("SELECT 1 AS one");
  return rows[0];
});
const client = await connected();
const url = await app.listen({ host: "127.0.0.1", port: 0 });
process.stdout.write(`${JSON.stringify({ url })}\n`);

async function connected(): Promise<Client> {
  for (;;) {
    try {
      const attempt = new Client({ host: process.argv[2], user: "postgres", database: "postgres" });
      await attempt.connect();
      return attempt;
    } catch {
      await delay(retryMs);
    }
  }
}
