// Connections to PostgreSQL. A pool is opened for one of the two runtime roles and never changes
// it; tenant queries run through `withOrg` only.

import postgres from "postgres";
import { socketOptions } from "./embedded/socket-url.ts";

export type Sql = postgres.Sql;
export type Tx = postgres.TransactionSql;
/** Where a query may run that does not care whether a transaction is open. */
export type Queryable = Sql | Tx;

export type RuntimeRole = "holdfast_app" | "holdfast_system";

export const SCHEMA = "holdfast";

export type PoolOptions = {
  url: string;
  role: RuntimeRole;
  application: string;
  max: number;
  /** Of every session, beside the usual ones. */
  parameters?: Record<string, string>;
};

export function openPool(options: PoolOptions): Sql {
  return postgres(options.url, {
    ...socketOptions(options.url),
    max: options.max,
    connect_timeout: 5,
    // The default grows to 20 s; a restarted database should be found again at once.
    backoff: (attempt: number) => Math.min(0.05 * 2 ** attempt, 1),
    onnotice: () => {},
    connection: {
      application_name: options.application,
      role: options.role,
      search_path: SCHEMA,
      statement_timeout: 30_000,
      idle_in_transaction_session_timeout: 30_000,
      ...options.parameters,
    },
  });
}

/** A single connection as the owner, for migrations. */
export function openOwner(url: string): Sql {
  return postgres(url, {
    ...socketOptions(url),
    max: 1,
    connect_timeout: 10,
    onnotice: () => {},
    connection: { application_name: "holdfast-migrate", search_path: SCHEMA },
  });
}

/**
 * Runs tenant queries in one transaction that row-level security confines to the organization.
 * The setting is sent together with the first query instead of waiting for its answer.
 */
export async function withOrg<T>(app: Sql, orgId: string, work: (tx: Tx) => Promise<T>): Promise<T> {
  const result = await app.begin(async (tx) => {
    const confined = tx`SELECT set_config('holdfast.org_id', ${orgId}, true)`.execute();
    const [, worked] = await Promise.all([confined, work(tx)]);
    return worked;
  });
  return result as T;
}

/** The database is away or restarting, as opposed to having refused the query. */
export function isUnavailable(error: unknown): boolean {
  const code = (error as { code?: unknown } | undefined)?.code;
  if (typeof code !== "string") return false;
  return unavailableCodes.has(code) || code.startsWith("08") || code.startsWith("57P");
}

const unavailableCodes = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "ENOENT",
  "EPIPE",
  "ETIMEDOUT",
  "CONNECT_TIMEOUT",
  "CONNECTION_CLOSED",
  "CONNECTION_DESTROYED",
  "CONNECTION_ENDED",
  // Too many connections; not accepting connections at present.
  "53300",
  "55000",
  // Given up by the server, to be tried again: time limit, deadlock, serialization.
  "57014",
  "40P01",
  "40001",
]);
