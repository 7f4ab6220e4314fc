// The peer of the `me` bench: a bare Fastify route without log, metrics, checks or extra headers,
// which finds the token by the api's own query over the same kind of pool and returns what /v1/me would.

import { openPool } from "@holdfast/control-plane/database/connect";
import { findToken } from "@holdfast/control-plane/people/authenticate";
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
  const row = await findToken(system, secretHash);
  if (!row) throw new Error("the token is unknown");
  return {
    type: "token",
    id: row.id,
    name: row.name,
    email: null,
    operator: false,
    scopes: row.scopes,
    organizations: [{ id: row.org_id, slug: row.org_slug, name: row.org_name, role: row.role }],
  };
});
const url = await app.listen({ host: "127.0.0.1", port: 0 });
process.stdout.write(`${JSON.stringify({ url })}\n`);
