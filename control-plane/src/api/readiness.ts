// Whether this api can serve requests: the database is reachable and has the schema that this version needs, and the CA
// that nodes trust is present.

import type { Readiness } from "@holdfast/service/health";
import { isUnavailable, type Sql } from "../database/connect.ts";
import { pendingMigrations } from "../database/migrate.ts";

const DEADLINE_MS = 2_000;

export async function readiness(system: Sql, hasCa: boolean): Promise<Readiness> {
  const database = await Promise.race([
    pendingMigrations(system).then(
      (pending) => ({ ok: true, pending: pending.length }),
      (error: Error) => ({ ok: false, pending: 0, reason: isUnavailable(error) ? "unreachable" : "query failed" }),
    ),
    new Promise<{ ok: boolean; pending: number; reason: string }>((resolve) =>
      setTimeout(() => resolve({ ok: false, pending: 0, reason: "no answer" }), DEADLINE_MS).unref(),
    ),
  ]);
  const reason = "reason" in database ? { reason: database.reason } : {};
  const migrations = { ok: database.ok && database.pending === 0 };
  return {
    ready: migrations.ok && hasCa,
    checks: {
      ca: hasCa ? { ok: true } : { ok: false, reason: "there are nodes, but not the CA that they trust" },
      database: { ok: database.ok, ...reason },
      migrations: migrations.ok ? migrations : { ok: false, reason: `${database.pending} pending` },
    },
  };
}
