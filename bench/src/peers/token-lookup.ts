// The peer of the `me` bench: a bare Fastify route without log, metrics, checks or extra headers,
// which runs the query that finds a token (control-plane/src/people/authenticate.ts) over the same
// kind of pool and answers what /v1/me would.

import { openPool } from "@holdfast/control-plane/database/connect";
import Fastify from "fastify";

export type TokenLookupPeer = { databaseUrl: string; poolSize: number; secretHash: string };

const options = JSON.parse(process.env["BENCH_PEER"] ?? "") as TokenLookupPeer;
const secretHash = Buffer.from(options.secretHash, "hex");
const system = openPool({
  url: options.databaseUrl,
  role: "holdfast_system",
  application: "holdfast-bench-peer",
  max: options.poolSize,
});
const app = Fastify({ logger: false });

app.get("/v1/me", async () => {
  const [row] = await system`
        SELECT t.id, t.name, t.role, t.scopes, t.last_used_at, o.id AS org_id, o.slug AS org_slug, o.name AS org_name,
               t.created_by, m.role AS maker_role, u.operator AS maker_operator
        FROM api_tokens t JOIN organizations o ON o.id = t.org_id
        LEFT JOIN users u ON u.id = t.created_by
        LEFT JOIN memberships m ON m.org_id = t.org_id AND m.user_id = t.created_by
        WHERE t.secret_hash = ${secretHash}
          AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now())`;
  if (!row) throw new Error("the token is unknown");
  return {
    type: "token",
    id: row["id"],
    name: row["name"],
    email: null,
    operator: false,
    scopes: row["scopes"],
    organizations: [{ id: row["org_id"], slug: row["org_slug"], name: row["org_name"], role: row["role"] }],
  };
});
const url = await app.listen({ host: "127.0.0.1", port: 0 });
process.stdout.write(`${JSON.stringify({ url })}\n`);
